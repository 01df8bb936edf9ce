#!/usr/bin/env python3
"""Writes trained weights as a checkpoint in the real formats:  export.py --model models/nano --weights DIR --out DIR

OUT gets config.json (with the confidence's temperatures), the shards and their index, and copies of the tokenizer's files.
FP8 per 32x32 block or engram row, FP4 per row and 32 columns, E8M0 scales, BF16 and F32 for the rest.
"""
import argparse
import json
import os
import shutil

import torch
from safetensors.torch import save_file

from checkpoint import load_weights
from engram import token_classes
from model import Config, Model
from numerics import pow2_ceil, round_fp4

SHARD_BYTES = 15 << 20
COPIED = ("tokenizer.json", "tokenizer_config.json", "encoding/prompt_texts.json")
FP4_GRID = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6])

# Parameter of model.Layer -> tensor of a block.
FP8 = {"wq_a": "attn.wq_a", "wq_b": "attn.wq_b", "wkv": "attn.wkv", "wo_a": "attn.wo_a", "wo_b": "attn.wo_b",
       "s1": "ffn.shared_experts.w1", "s2": "ffn.shared_experts.w2", "s3": "ffn.shared_experts.w3", "i_wqb": "attn.indexer.wq_b",
       "e_wkv": "engram.wkv"}
BF16 = {"q_norm": "attn.q_norm.weight", "kv_norm": "attn.kv_norm.weight", "attn_norm": "attn_norm.weight",
        "ffn_norm": "ffn_norm.weight", "gate": "ffn.gate.weight", "c_wkv": "attn.compressor.wkv.weight",
        "c_wgate": "attn.compressor.wgate.weight", "c_norm": "attn.compressor.norm.weight", "i_wk": "attn.indexer.wk.weight",
        "i_knorm": "attn.indexer.k_norm.weight", "i_wproj": "attn.indexer.weights_proj.weight", "e_q": "engram.q_weight",
        "e_k": "engram.k_weight"}
F32 = {"attn_sink": "attn.attn_sink", "gate_bias": "ffn.gate.bias",
       **{f"hc_{a}_{b}": f"hc_{a}_{b}" for a in ("attn", "ffn") for b in ("fn", "base", "scale")}}
EXPERTS = ("w1", "w2", "w3")


def globals_of(config):
    """Parameter of model.Model -> tensor, and whether it is FP8."""
    last = f"mtp.{config.drafts - 1}."
    return {"embed": ("embed.weight", False), "head": ("head.weight", False), "norm": ("norm.weight", False),
            "main_proj": ("mtp.0.main_proj", True), "main_norm": ("mtp.0.main_norm.weight", False),
            "mtp_norm": (last + "norm.weight", False), "mk_embed": (last + "markov_head.embed.weight", False),
            "mk_head": (last + "markov_head.head.weight", False), "conf": (last + "confidence_head.proj.weight", False)}


def e8m0(scale):
    """Powers of two (F32) -> their bytes."""
    return (scale.contiguous().view(torch.int32) >> 23).to(torch.uint8).view(torch.float8_e8m0fnu)


def fp8(w, block=32):
    """[rows, columns] -> e4m3 weights, scales [rows/block, columns/32]."""
    rows, columns = w.shape
    g = w.float().reshape(rows // block, block, columns // 32, 32)
    scale = pow2_ceil(g.abs().amax((1, 3), keepdim=True).clamp(min=2.0 ** -100) * (1 / 448))
    return (g / scale).clamp(-448, 448).to(torch.float8_e4m3fn).reshape(rows, columns), e8m0(scale[:, 0, :, 0])


def fp4(w):
    """[.., columns] -> packed codes (low nibble first) [.., columns/2] int8, scales [.., columns/32]."""
    g = w.float().unflatten(-1, (-1, 32))
    scale = pow2_ceil(g.abs().amax(-1, keepdim=True).clamp(min=2.0 ** -100) * (1 / 6))
    error = [((round_fp4(g / s) * s - g) ** 2).sum(-1, keepdim=True) for s in (scale, scale * 0.5)]
    scale = torch.where(error[1] < error[0], scale * 0.5, scale)
    q = round_fp4(g / scale)
    code = (torch.searchsorted(FP4_GRID, q.abs()).to(torch.uint8) | (torch.signbit(q).to(torch.uint8) << 3)).flatten(-2)
    return (code[..., 0::2] | (code[..., 1::2] << 4)).view(torch.int8), e8m0(scale[..., 0])


def block_tensors(layer, base):
    """Tensors of a text layer or draft block, name -> tensor."""
    out = {}
    for name, target in FP8.items():
        if hasattr(layer, name):
            out[base + target + ".weight"], out[base + target + ".scale"] = fp8(getattr(layer, name))
    for name, target in BF16.items():
        if hasattr(layer, name):
            out[base + target] = getattr(layer, name).to(torch.bfloat16)
    for name, target in F32.items():
        out[base + target] = getattr(layer, name).float()
    out[base + "ffn.gate.bias_vl"] = layer.gate_bias.float().clone()   # until images are trained
    if hasattr(layer, "e_table"):
        out[base + "engram.embed.weight"], out[base + "engram.embed.scale"] = fp8(layer.e_table, 1)
    for name in EXPERTS:
        for e, (codes, scale) in enumerate(zip(*fp4(getattr(layer, name)))):
            out[f"{base}ffn.experts.{e}.{name}.weight"], out[f"{base}ffn.experts.{e}.{name}.scale"] = codes, scale
    return out


@torch.no_grad()
def tensors(model):
    """All tensors of the checkpoint, on the host."""
    model = model.cpu() if model.embed.device.type == "cpu" else _host_copy(model)
    out = {}
    for name, (target, is_fp8) in globals_of(model.c).items():
        if is_fp8:
            out[target + ".weight"], out[target + ".scale"] = fp8(getattr(model, name))
        else:
            out[target] = getattr(model, name).to(torch.bfloat16)
    for prefix, layers in (("layers", model.layers), ("mtp", model.mtp)):
        for i, layer in enumerate(layers):
            out.update(block_tensors(layer, f"{prefix}.{i}."))
    return {k: v.detach().contiguous().clone() for k, v in out.items()}


def _host_copy(model):
    copy = Model(model.c, model.classes.cpu())
    copy.load_state_dict({k: v.cpu() for k, v in model.state_dict().items()})
    return copy


def write_shards(state, folder):
    """-> sum of tensor bytes."""
    groups, sizes = [{}], [0]
    for name, tensor in state.items():
        count = tensor.numel() * tensor.element_size()
        if sizes[-1] and sizes[-1] + count > SHARD_BYTES:
            groups.append({})
            sizes.append(0)
        groups[-1][name] = tensor
        sizes[-1] += count
    index = {"metadata": {"total_size": sum(sizes)}, "weight_map": {}}
    for i, group in enumerate(groups):
        file = f"model-{i + 1:05d}-of-{len(groups):05d}.safetensors"
        save_file(group, os.path.join(folder, file))
        os.chmod(os.path.join(folder, file), 0o644)
        index["weight_map"].update(dict.fromkeys(group, file))
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as file:
        json.dump(index, file, separators=(",", ":"), sort_keys=True)
    return sum(sizes)


def export(model, model_folder, out, temperatures=None):
    """-> bytes of all files of `out`."""
    os.makedirs(os.path.join(out, "encoding"), exist_ok=True)
    for name in os.listdir(out):
        if ".safetensors" in name:
            os.remove(os.path.join(out, name))
    write_shards(tensors(model), out)
    with open(os.path.join(model_folder, "config.json")) as file:
        config = json.load(file)
    config["text_config"].pop("dspark_confidence_temperatures", None)   # of other draft blocks
    if temperatures:
        config["text_config"]["dspark_confidence_temperatures"] = temperatures
    with open(os.path.join(out, "config.json"), "w") as file:
        json.dump(config, file, indent=1)
        file.write("\n")
    for name in COPIED:
        source = os.path.join(model_folder, name)
        if os.path.exists(source) and os.path.abspath(model_folder) != os.path.abspath(out):
            shutil.copyfile(source, os.path.join(out, name))
    return sum(os.path.getsize(os.path.join(folder, f)) for folder, _, files in os.walk(out) for f in files)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", required=True, help="folder with config.json and tokenizer.json")
    p.add_argument("--weights", required=True, help="of train.py: its weights folder, or the shards as they came back")
    p.add_argument("--out", required=True)
    o = p.parse_args()
    with open(os.path.join(o.model, "config.json")) as file:
        config = Config.from_hf(json.load(file))
    model = Model(config, token_classes(o.model, config))
    meta = load_weights(o.weights, model)
    print(f"{o.out}: {export(model, o.model, o.out, meta.get('temperatures'))} bytes")


if __name__ == "__main__":
    main()
