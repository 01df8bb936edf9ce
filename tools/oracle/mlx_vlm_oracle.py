"""mlx-vlm's `deepseek_v41` on MLX's CPU backend against a golden folder: prefill in one piece and
in chunks, and decode, through its own cache.

It reads the checkpoint as it is and quantises activations like the official arithmetic. It has no
draft. Two things are changed here because MLX's CPU backend is not its GPU one: expert products are
F32-only on the CPU, and rope, RMS norm and attention round intermediates to BF16 there; all are
evaluated in F32 and rounded once.
"""
import glob
import importlib.util
import json
import os
import sys
import types

import mlx.core as mx
import numpy as np

import golden

CHUNKS = (1, 2, 5, 3, 7, 16)  # repeated


def skip_package_init(name):
    """Make a package importable without its __init__, which pulls in audio, video and servers."""
    if "." in name:
        parent, leaf = name.rsplit(".", 1)
        folder = os.path.join(sys.modules[parent].__path__[0], leaf)
    else:
        folder = importlib.util.find_spec(name).submodule_search_locations[0]
    module = types.ModuleType(name)
    module.__path__ = [folder]
    sys.modules[name] = module


def f32_expert_products(switch_layers):
    def call(self, x, indices, sorted_indices=False):
        if self.weight.dtype != mx.float32:
            self.weight = self.weight.astype(mx.float32)
        out = mx.gather_mm(x.astype(mx.float32), self.weight.swapaxes(-1, -2), rhs_indices=indices,
                           sorted_indices=sorted_indices)
        return out.astype(x.dtype)
    switch_layers.SwitchLinear.__call__ = call


def f32_fast_ops():
    def up(value):
        is_bf16 = isinstance(value, mx.array) and value.dtype == mx.bfloat16
        return value.astype(mx.float32) if is_bf16 else value

    def wrap(function):
        def call(x, *args, **kwargs):
            more = {key: up(value) for key, value in kwargs.items()}
            return function(x.astype(mx.float32), *map(up, args), **more).astype(x.dtype)
        return call

    for name in ("rope", "rms_norm", "scaled_dot_product_attention"):
        setattr(mx.fast, name, wrap(getattr(mx.fast, name)))


def read_shards(checkpoint):
    """All tensors as MLX arrays; FP8, E8M0 and packed FP4 stay raw bytes."""
    weights = {}
    for path in sorted(glob.glob(os.path.join(checkpoint, "*.safetensors"))):
        shard = golden.Safetensors(path)
        for name, entry in shard.header.items():
            value = mx.array(shard[name])
            weights[name] = value.astype(mx.bfloat16) if entry["dtype"] == "BF16" else value
    return weights


class Oracle:
    def __init__(self, checkpoint):
        for name in ("mlx_vlm", "mlx_vlm.models", "mlx_vlm.models.deepseek_v4",
                     "mlx_vlm.models.deepseek_v41"):
            skip_package_init(name)
        from mlx_vlm.models import switch_layers
        from mlx_vlm.models.deepseek_v41 import config, deepseek_v41, engram
        mx.set_default_device(mx.cpu)
        f32_expert_products(switch_layers)
        f32_fast_ops()
        with open(os.path.join(checkpoint, "config.json")) as file:
            cfg = config.ModelConfig.from_dict(json.load(file))
        self.model = deepseek_v41.Model(cfg)
        weights = self.model.sanitize(read_shards(checkpoint))
        self.model.load_weights(list(weights.items()), strict=True)  # strict: a census of names
        mx.eval(self.model.parameters())
        language = self.model.language_model
        if language.layout is not None:
            classes = golden.token_classes(checkpoint).tolist()
            language.engram_hash = engram.NgramHashState(cfg, language.layout, token_map=classes)

    def step(self, ids, cache):
        """Logits [len(ids), vocab] of the next ids."""
        out = self.model(mx.array([ids]), cache=cache).logits
        mx.eval(out)
        return np.array(out[0].astype(mx.float32))

    def prefill(self, ids, chunks):
        """(logits of all ids, cache); `chunks` are piece lengths, repeated."""
        cache, rows, at, turn = self.model.make_cache(), [], 0, 0
        while at < len(ids):
            size = chunks[turn % len(chunks)]
            rows.append(self.step(ids[at:at + size], cache))
            at, turn = at + size, turn + 1
        return np.concatenate(rows), cache


def main():
    args = golden.parse_arguments(__doc__)
    ref = golden.Golden(args.folder)
    oracle = Oracle(ref.checkpoint)
    whole, cache = oracle.prefill(ref.prompt, [len(ref.prompt)])
    decode = np.concatenate([oracle.step([token], cache) for token in ref.tokens[:ref.steps]])
    chunked, _ = oracle.prefill(ref.prompt, CHUNKS)
    golden.report({
        "prefill": golden.logits_figures(whole, ref.prompt_logits, ref.limit),
        "prefill in chunks": golden.logits_figures(chunked, ref.prompt_logits, ref.limit),
        "decode": golden.logits_figures(decode, ref.decode_logits, ref.limit)}, args.json)


if __name__ == "__main__":
    main()
