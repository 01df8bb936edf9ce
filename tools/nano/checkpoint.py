"""Weights between two stages: safetensors files small enough to travel, without optimiser state.

Matrices are BF16; what the checkpoint format keeps in F32 (stream mixes, sinks, router biases) stays F32. A save goes into
the one of two folders that is not current and then `current` is renamed over: a reader always finds a whole one.
"""
import json
import os
import shutil

import torch
from safetensors.torch import load_file, save_file

SHARD_BYTES = 15 << 20
META = "meta.json"


def keeps_f32(name):
    return any(part in name for part in ("hc_", "attn_sink", "gate_bias"))


def shards(state):
    """name -> tensor, cut into groups of at most SHARD_BYTES."""
    groups, size = [{}], 0
    for name, tensor in state.items():
        bytes_ = tensor.numel() * tensor.element_size()
        if bytes_ > SHARD_BYTES:
            raise ValueError(f"{name}: {bytes_} bytes, expected at most {SHARD_BYTES}: it would not fit into a shard")
        if size + bytes_ > SHARD_BYTES - (1 << 18):   # room for the header
            groups.append({})
            size = 0
        groups[-1][name] = tensor
        size += bytes_
    return groups


def save_weights(root, model, meta):
    """Writes root/a or root/b and points root/current at it. meta: what a later stage needs to know (JSON)."""
    state = {k: (v.float() if keeps_f32(k) else v.to(torch.bfloat16)).cpu().contiguous() for k, v in model.state_dict().items()}
    for name, value in state.items():
        if not torch.isfinite(value).all():
            raise ValueError(f"{name}: not finite, so nothing was saved; {root}/current is the last good one")
    os.makedirs(root, exist_ok=True)
    here = "b" if current(root) == os.path.join(root, "a") else "a"
    folder = os.path.join(root, here)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for i, group in enumerate(shards(state)):
        save_file(group, os.path.join(folder, f"weights-{i + 1:02d}.safetensors"))
    with open(os.path.join(folder, META), "w") as file:
        json.dump(meta, file, indent=1)
    with open(os.path.join(root, "current.new"), "w") as file:
        file.write(here)
    os.replace(os.path.join(root, "current.new"), os.path.join(root, "current"))
    return folder


def current(root):
    """The folder of the last whole save, or None."""
    path = os.path.join(root, "current")
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return os.path.join(root, file.read())


def load_weights(folder, model):
    """folder: of save_weights, or its root, or the shards as they came back. -> meta."""
    folder = current(folder) or folder
    state = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            state.update(load_file(os.path.join(folder, name)))
    wanted = model.state_dict()
    for name, tensor in wanted.items():
        if name not in state:
            raise ValueError(f"{folder}: no tensor {name}; is a shard missing?")
        if state[name].shape != tensor.shape:
            raise ValueError(f"{folder}: {name} has shape {list(state[name].shape)}, expected {list(tensor.shape)} as config.json says")
    model.load_state_dict({k: state[k].float() for k in wanted})
    with open(os.path.join(folder, META)) as file:
        return json.load(file)
