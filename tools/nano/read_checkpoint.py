"""A checkpoint in the real formats -> model.Model, so that what was exported can be compared with the engine."""
import json
import os

import torch
from safetensors import safe_open

from export import BF16, EXPERTS, F32, FP4_GRID, FP8, globals_of
from model import Config, Model

FP4_VALUES = torch.cat((FP4_GRID, -FP4_GRID))


class Checkpoint:
    def __init__(self, folder):
        self.raw = {}
        for name in sorted(os.listdir(folder)):
            if name.endswith(".safetensors"):
                with safe_open(os.path.join(folder, name), "pt") as file:
                    self.raw.update({k: file.get_tensor(k) for k in file.keys()})

    def value(self, name):
        """A tensor's values, F32. name: as stored, or without .weight where a scale belongs to it."""
        if name in self.raw:
            return self.raw[name].float()
        w, scale = self.raw[name + ".weight"], torch.exp2(self.raw[name + ".scale"].view(torch.uint8).float() - 127)
        if w.dtype == torch.int8:
            b = w.view(torch.uint8).long()
            w = FP4_VALUES[torch.stack((b & 15, b >> 4), -1).flatten(-2)]
        w = w.float().unflatten(-1, (-1, 32))
        if scale.shape[0] != w.shape[0]:
            scale = scale.repeat_interleave(32, 0)
        return (w * scale.unsqueeze(-1)).flatten(-2)


@torch.no_grad()
def fill(model, folder):
    c = Checkpoint(folder)

    def put(parameter, value, name):
        if parameter.shape != value.shape:
            raise ValueError(f"{folder}: {name} has shape {list(value.shape)}, expected {list(parameter.shape)}")
        parameter.copy_(value)
    for name, (target, _) in globals_of(model.c).items():
        put(getattr(model, name), c.value(target), target)
    for prefix, layers in (("layers", model.layers), ("mtp", model.mtp)):
        for i, layer in enumerate(layers):
            base = f"{prefix}.{i}."
            for name, target in {**FP8, **BF16, **F32, "e_table": "engram.embed"}.items():
                if hasattr(layer, name):
                    put(getattr(layer, name), c.value(base + target), base + target)
            for name in EXPERTS:
                parts = [c.value(f"{base}ffn.experts.{e}.{name}") for e in range(layer.gate.shape[0])]
                put(getattr(layer, name), torch.stack(parts), f"{base}ffn.experts.*.{name}")
    return model


def open_model(folder, classes):
    """classes: (folder, Config) -> engram classes. -> filled Model, temperatures of its confidence [K]."""
    with open(os.path.join(folder, "config.json")) as file:
        document = json.load(file)
    config = Config.from_hf(document)
    temperatures = document["text_config"].get("dspark_confidence_temperatures", [1.0] * config.draft_block)
    return fill(Model(config, classes(folder, config)), folder), torch.tensor(temperatures)
