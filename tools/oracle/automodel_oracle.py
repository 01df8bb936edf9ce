"""NVIDIA nemo-automodel's DeepSeek-V4.1 (PyTorch, eager, CPU) against a golden folder: end to end,
layer by layer from the stored streams, and the draft by itself.

It is training code: whole sequences, no cache. Its own adapters read the checkpoint, and loading is
strict, so it is a census of the names too. Two switches bring it to the published arithmetic; both
move rounding points and neither brings arithmetic of ours:
  * it quantises what it caches but not the inputs of FP8 and FP4 products; hooks that call its own
    quantiser add that;
  * attention probabilities are rounded to BF16 relative to the row's maximum, and routed and shared
    expert outputs are added in F32 and rounded once.
"""
import dataclasses
import glob
import json
import os

import numpy as np
import torch
from nemo_automodel.components.models.common import BackendConfig
from nemo_automodel.components.models.deepseek_v41 import (
    attention, config, dspark, engram, model, quantization)
from safetensors.torch import load_file

import golden

torch.set_grad_enabled(False)
FP8_INPUTS = {"wq_a", "wq_b", "wkv", "wo_b", "gate_proj", "up_proj", "down_proj", "main_proj"}
DRAFT_LOGIT_STEPS = (0, 9, 23)  # of draft_logits_at_0_9_23
DRAFT_GAP = 0.2  # closer draft logits may change places


def load_strictly(module, state):
    missing, unexpected = module.load_state_dict(state, strict=False)
    missing = [name for name in missing if "_extra_state" not in name]
    if missing or unexpected:
        raise SystemExit("state dict: missing %s, unexpected %s" % (missing[:8], unexpected[:8]))
    module.eval()


def quantise_inputs(root):
    """Put the input of every product whose weight is FP8 or FP4 on the FP8 grid (wo_a has none)."""
    def quantise(x):
        return quantization.quantize_cache(x, format="fp8", block_size=32)

    def before(_, args):
        return (quantise(args[0]),) + args[1:]

    for name, module in root.named_modules():
        leaf = name.rsplit(".", 1)[-1]
        if leaf in FP8_INPUTS and isinstance(module, torch.nn.Linear) and "compressor" not in name:
            module.register_forward_pre_hook(before)
        if name.endswith("ffn.experts"):
            module.register_forward_pre_hook(before)
            act = module.expert_activation_grouped
            module.expert_activation_grouped = lambda *a, act=act, **k: quantise(act(*a, **k))


def round_probabilities():
    functional = attention.F

    class Shim:  # `F.dropout` is the step between softmax and the product with V
        def __getattr__(self, name):
            return getattr(functional, name)

        @staticmethod
        def dropout(weights, **_):
            top = weights[..., :-1].amax(-1, keepdim=True)  # the last column is the sink
            return (weights / top).to(torch.bfloat16).float() * top
    attention.F = dspark.F = Shim()


def round_experts_once(root):
    """Let the F32 sum of the routed experts leave their module; the FFN's output is rounded."""
    for name, module in root.named_modules():
        if name.endswith("ffn.experts") and hasattr(module, "_forward_loop"):
            kept, loop = [], module._forward_loop
            module._forward_loop = lambda *a, loop=loop, kept=kept: (
                kept.append(loop(*a)) or kept[-1])
            module.register_forward_hook(lambda m, args, out, kept=kept: kept.pop())
        elif name.endswith(".ffn"):
            module.register_forward_hook(lambda m, args, out: out.to(torch.bfloat16))


def difference(layer, after, got, want):
    """Bit-equal elements of a layer's output [T, streams, D], and the rows that hold the others."""
    equal = got == want
    rows = np.flatnonzero(~equal.reshape(len(equal), -1).all(1))
    return {"layer": layer, "after": after, "equal": int(equal.sum()), "total": int(equal.size),
            "rows": rows.tolist()}


def inject_selection(layer, stored, own=None):
    """Make the layer go on with the stored selection [rows, topk]; `own` gets what it chose."""
    def replace(_, args, out):
        if own is not None:
            own.append(out.topk_indices[0].numpy())
        return dataclasses.replace(out, topk_indices=torch.tensor(stored)[None].long())
    return layer.attn.indexer.register_forward_hook(replace)


def selection_difference(ref, layer, own):
    """Rows of the prompt that chose another set of entries, and how clear the stored choice was."""
    stored = ref.outputs["official.sel_prompt.%d" % layer]
    gaps = ref.outputs["official.selgap_prompt.%d" % layer]
    wrong = [t for t, (a, b) in enumerate(zip(own, stored)) if {*a} - {-1} != {*b} - {-1}]
    return {"layer": layer, "rows": len(stored), "different": len(wrong),
            "largest gap there": max((float(gaps[t]) for t in wrong), default=0)}


class Oracle:
    def __init__(self, checkpoint):
        with open(os.path.join(checkpoint, "config.json")) as file:
            raw = json.load(file)
        raw.pop("model_type")
        self.config = config.DeepseekV41Config(**raw)
        classes = golden.token_classes(checkpoint).tolist()
        # A toy vocabulary has no tokenizer to take the classes from.
        engram._compressed_token_map = lambda tokenizer: (tuple(classes), max(classes) + 1)
        self.backend = BackendConfig(attn="eager", linear="torch", rms_norm="torch_fp32",
                                     experts="torch", dispatcher="torch", rope_fusion=False)
        self.model = model.DeepseekV41ForCausalLM(self.config, backend=self.backend,
                                                  tokenizer=object())
        self.weights = {}
        for path in sorted(glob.glob(os.path.join(checkpoint, "*.safetensors"))):
            self.weights.update(load_file(path))
        load_strictly(self.model, self.model.state_dict_adapter.from_hf(dict(self.weights)))
        quantise_inputs(self.model)
        round_experts_once(self.model)
        round_probabilities()

    def end_to_end(self, ref):
        """One pass over the prompt and the fed tokens, which is causal, with selections of the
        oracle's own and one with the stored ones."""
        ids = torch.tensor([ref.prompt + ref.tokens[:ref.steps]])
        figures = self._logits_figures(ids, ref, ref.limit, "")
        hooks = []
        for name, layer in self.model.model.layers.items():
            if layer.attn.indexer is not None:
                stored = [ref.outputs["official.sel_%s.%s" % (part, name)]
                          for part in ("prompt", "decode")]
                hooks.append(inject_selection(layer, np.concatenate(stored)))
        figures |= self._logits_figures(ids, ref, ref.injected_limit, ", selections given")
        for hook in hooks:
            hook.remove()
        return figures

    def _logits_figures(self, ids, ref, limit, mode):
        logits = self.model(ids).logits[0].float().numpy()
        count = len(ref.prompt)
        return {"prefill" + mode: golden.logits_figures(logits[:count], ref.prompt_logits, limit),
                "decode" + mode: golden.logits_figures(logits[count:], ref.decode_logits, limit)}

    def layer_by_layer(self, ref):
        """Every layer from the stored streams, going on with the stored selections."""
        text, ids = self.model.model, torch.tensor([ref.prompt])
        positions = torch.arange(ids.shape[1])[None]
        hashes = text.engram_hash(ids) if text.engram_hash is not None else None
        state, layers, selections = attention.DeepseekV41AttentionState(), [], []
        for name, layer in text.layers.items():
            number, middle = int(name), []
            expand = layer.attn_hc.expand
            layer.attn_hc.expand = lambda *a: middle.append(expand(*a)) or middle[0]
            hook, own = None, []
            if layer.attn.indexer is not None:
                hook = inject_selection(layer, ref.outputs["official.sel_prompt.%d" % number], own)
            streams = torch.tensor(ref.outputs["layer_X"][number])[None].to(torch.bfloat16)
            pre = torch.tensor(ref.outputs["layer_pre"][number])[None]
            rows = None if layer.engram is None else hashes[:, :, layer.engram.layer_hash_index]
            out, _, state = layer(streams, pre, state, position_ids=positions, engram_hash_ids=rows)
            del layer.attn_hc.expand
            if hook is not None:
                hook.remove()
                selections.append(selection_difference(ref, number, own[0]))
            for after, got, want in (("attention", middle[0], ref.outputs["mid_X"][number]),
                                     ("experts", out, ref.outputs["layer_X"][number + 1])):
                layers.append(difference(number, after, got[0].float().numpy(), want))
        figures = {"layers": layers, "selections": selections}
        if hashes is not None:
            wrong = hashes[0].numpy() != ref.outputs["engram_rows"]
            figures["engram rows, different"] = int(wrong.sum())
        return figures

    def draft(self, ref):
        """From the stored features and anchors; each position goes on from the stored ids."""
        text = self.config.text_config
        net = dspark.DeepseekV41DSparkModel(text, self.backend, num_anchors=1,
                                            enable_confidence_head=True)
        load_strictly(net, net.state_dict_adapter.from_hf(dict(self.weights)))
        quantise_inputs(net)
        round_experts_once(net)
        hidden = []  # the released model's confidence head reads the hidden state before the norm
        net.mtp[-1].norm.register_forward_pre_hook(lambda _, args: hidden.append(args[0]))
        wanted = {name: ref.outputs["draft_" + name] for name in ("ids", "conf", "top5_vals")}
        ids_wrong, confidence_error, rows = 0, 0.0, []
        for step in range(ref.steps):
            logits, confidence = self._propose(net, ref, step, hidden, wanted["ids"][step])
            best = wanted["top5_vals"][step]
            clear = best[:, 0] - best[:, 1] > DRAFT_GAP
            ids_wrong += int((clear & (logits.argmax(1) != wanted["ids"][step])).sum())
            confidence_error = max(confidence_error,
                                   float(np.abs(confidence - wanted["conf"][step]).max()))
            if step in DRAFT_LOGIT_STEPS:
                rows.append(logits)
        want = ref.outputs["draft_logits_at_0_9_23"].reshape(-1, text.vocab_size)
        got = np.concatenate(rows)
        return {"clear ids, different": ids_wrong,
                "logits rel_rms": float(np.linalg.norm(got - want) / np.linalg.norm(want)),
                "confidence max error": confidence_error}

    def _propose(self, net, ref, step, hidden, stored_ids):
        """Corrected logits [block, vocab] and confidences [block] after a decode step."""
        text = self.config.text_config
        count, block = len(ref.prompt) + step + 1, text.dspark_block_size
        context = torch.tensor(ref.outputs["main_hidden"][None, :count]).to(torch.bfloat16)
        anchor, keep = torch.tensor([[count]]), torch.ones(1, 1, dtype=torch.bool)
        tokens = torch.full((1, block), text.dspark_noise_token_id)
        tokens[0, 0] = ref.tokens[step + 1]
        hidden.clear()
        out = dspark.DeepseekV41DSparkBackbone.forward(
            net, net.embed_tokens(tokens), context,
            position_ids=net.build_position_ids(anchor, count),
            attention_mask=net.build_attention_mask(anchor, keep, count, torch.float32))
        base = net.compute_logits(out.normalized_hidden_states)[0]
        last, logits, confidence = net.mtp[-1], [], []
        for k in range(block):
            previous = ref.tokens[step + 1] if k == 0 else int(stored_ids[k - 1])
            _, embedding = last.markov_head(torch.tensor([previous]))
            head = last.markov_head.head.weight.float()
            logits.append(base[k] + torch.nn.functional.linear(embedding.float(), head)[0])
            confidence.append(float(last.confidence_head(hidden[0][0, k][None], embedding)))
        return torch.stack(logits).numpy(), np.array(confidence)


def main():
    args = golden.parse_arguments(__doc__)
    ref = golden.Golden(args.folder)
    oracle = Oracle(ref.checkpoint)
    figures = oracle.end_to_end(ref) | oracle.layer_by_layer(ref)
    if "draft_ids" in ref.outputs:
        figures["draft"] = oracle.draft(ref)
    golden.report(figures, args.json)


if __name__ == "__main__":
    main()
