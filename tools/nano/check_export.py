#!/usr/bin/env python3
"""Compares the PyTorch definition (reference.py) with a run of other arithmetic in the golden layout.

    check_export.py GOLDEN_DIR                               outputs that are there already (tests/golden/README.md)
    check_export.py --engine deepinfer --model DIR [--prompts FILE.bin] [--tokens 160]
                                                             lets the engine run DIR first, on windows of a shard of ids

Layer by layer from the stored streams, end to end with the stored selections and without, the draft alone; and, with a
wide limit, how far the arithmetic of training (model.py, grids on) is. Prints every figure beside its limit; exit status 1
if one is outside. The limits are those of the golden data, but for what limits.json of the folder or of tests/golden/nano
(--model) says.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors.torch import save_file

from engram import token_classes
from golden import Drafts, Given, Layers, follow, load, relative
from model import Config
from read_checkpoint import open_model
from reference import Tap

HERE = os.path.dirname(os.path.abspath(__file__))
TRAINED_LIMITS = os.path.join(HERE, "..", "..", "tests", "golden", "nano", "limits.json")
LIMITS = {"injected": 1.5e-2, "free": 5e-2, "layers": 0.995, "decode_layers": 0.995, "selections": 0, "draft": 5e-3,
          "confidence": 5e-2}
TRAINING = 8e-2     # logits of model.py with grids, relative RMS: it sums all experts in one product and has no BF16 probabilities


class Figures:
    def __init__(self):
        self.bad = 0

    def at_most(self, name, measured, limit):
        self._line(name, measured, limit, measured <= limit)

    def at_least(self, name, measured, limit):
        self._line(name, measured, limit, measured >= limit)

    def _line(self, name, measured, limit, good):
        self.bad += not good
        print(f"{name:46s} {measured:10.4g}  limit {limit:8.4g}  {'ok' if good else 'OUTSIDE'}")


def classes_of(checkpoint, config):
    path = os.path.join(checkpoint, "engram_classes.bin")
    if os.path.exists(path):
        return np.fromfile(path, "<i4").tolist()
    return token_classes(checkpoint, config)


def selections(out, config, tokens):
    """Stored selections of the prompt as masks, layer -> [1,T,n] uint8."""
    result = {}
    for l in config.idx_src:
        chosen = out[f"official.sel_prompt.{l}"].long()
        n = tokens // config.ratios[l]
        mask = torch.zeros(tokens, n + 1, dtype=torch.uint8)
        mask.scatter_(1, torch.where(chosen < 0, n, chosen), 1)
        result[l] = mask[None, :, :n]
    return result


def clear_argmax(got, want, limit):
    """Share of rows with the same best token, of those whose two best are further apart than the limit could explain."""
    top = want.topk(2, -1).values
    clear = top[:, 0] - top[:, 1] > 4 * limit * want.square().mean().sqrt()
    return ((got.argmax(-1) == want.argmax(-1)) | ~clear).float().mean().item()


def check_layers(model, out, temperatures, limits, figures):
    tap, drafts = Layers(out, model.c.layers), Drafts(out, temperatures)
    follow(model, out, tap, drafts)
    for what, layers, limit in (("after attention", tap.attention, "layers"), ("after experts", tap.experts, "layers"),
                                ("decode steps", tap.decode, "decode_layers")):
        for l, figure in enumerate(layers):
            figures.at_least(f"{what}, layer {l}, bit-equal", figure.value(), limits[limit])
    figures.at_least("after engram, bit-equal", tap.engrams.value(), limits["layers"])
    figures.at_least("draft input, bit-equal", tap.mains.value(), limits["layers"])
    figures.at_most("engram rows, different", tap.engram_rows, 0)
    figures.at_most("expert routes, different rows", tap.wrong_routes, 0)
    figures.at_most("candidate blocks, different rows", tap.wrong_blocks, 0)
    figures.at_most(f"selections, different rows ({tap.ties} near ties)", tap.wrong_selections, limits["selections"])
    figures.at_most("draft, clear ids, different", drafts.wrong, 0)
    figures.at_most("draft logits, relative RMS", drafts.error(), limits["draft"])
    figures.at_most("draft confidence, largest difference", drafts.confidence, limits["confidence"])


def check_whole(model, out, name, tap, limit, figures):
    prompt, steps, _ = follow(model, out, tap)
    for part, got, want in (("prompt", prompt, out["official.prompt_logits"]), ("decode", steps, out["official.decode_logits"])):
        figures.at_most(f"logits, {name}, {part}, relative RMS", relative(got, want), limit)
        figures.at_least(f"argmax, {name}, {part}, equal where clear", clear_argmax(got, want, limit), 1)


def check_training(model, out, figures):
    model.quant = True
    ids = out["prompt_ids"].long()[None]
    got = model.logits(model(ids, select=True, inject=selections(out, model.c, ids.shape[1]))["h"])[0]
    figures.at_most("logits of model.py, injected, relative RMS", relative(got, out["official.prompt_logits"]), TRAINING)


def read_limits(path):
    if not os.path.exists(path):
        return LIMITS
    with open(path) as file:
        return LIMITS | json.load(file)


@torch.no_grad()
def check(folder, figures, free=True):
    """free: also the model's own selections and the arithmetic of training, which flip near ties where little has been learnt."""
    model, temperatures = open_model(os.path.join(folder, "checkpoint"), classes_of)
    limits = read_limits(os.path.join(folder, "limits.json"))
    out = load(os.path.join(folder, "outputs.safetensors"))
    check_layers(model, out, temperatures, limits, figures)
    check_whole(model, out, "injected", Given(out), limits["injected"], figures)
    if free:
        check_whole(model, out, "free", Tap(), limits["free"], figures)
        check_training(model, out, figures)


def record(engine, model, prompt, folder):
    """Runs the engine on a prompt (ids, or None: a random one of its own); the golden folder is then complete."""
    shutil.copyfile(TRAINED_LIMITS, os.path.join(folder, "limits.json"))
    checkpoint = os.path.join(folder, "checkpoint")
    os.makedirs(checkpoint)
    for name in os.listdir(model):
        os.symlink(os.path.abspath(os.path.join(model, name)), os.path.join(checkpoint, name))
    with open(os.path.join(model, "config.json")) as file:
        config = Config.from_hf(json.load(file))
    np.array(token_classes(model, config), "<i4").tofile(os.path.join(checkpoint, "engram_classes.bin"))
    command = [engine, "selftest", "--record", folder]
    if prompt is None:
        command += ["--prompt-tokens", "160"]
    else:
        asked = os.path.join(folder, "asked")
        os.makedirs(asked)
        save_file({"prompt_ids": torch.tensor(prompt, dtype=torch.int32)}, os.path.join(asked, "outputs.safetensors"))
        command += ["--prompt-of", asked]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def prompts(path, tokens, count, bos=0):
    ids = np.fromfile(path, "<u2")
    return [[bos, *ids[at:at + tokens - 1].tolist()] for at in np.linspace(0, len(ids) - tokens, count).astype(int)]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("golden", nargs="?")
    p.add_argument("--engine")
    p.add_argument("--model")
    p.add_argument("--prompts", help="a shard of ids (uint16); default: the engine's random prompt")
    p.add_argument("--tokens", type=int, default=160)
    p.add_argument("--count", type=int, default=2)
    o = p.parse_args()
    figures = Figures()
    if o.golden:
        check(o.golden, figures)
    else:
        for prompt in prompts(o.prompts, o.tokens, o.count) if o.prompts else [None]:
            with tempfile.TemporaryDirectory() as folder:
                record(o.engine, o.model, prompt, folder)
                check(folder, figures)
    return 1 if figures.bad else 0


if __name__ == "__main__":
    sys.exit(main())
