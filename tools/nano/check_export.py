#!/usr/bin/env python3
"""Compares model.py, inference grids on, with a run of other arithmetic in the golden layout.

    check_export.py GOLDEN_DIR                               outputs that are there already (tests/golden/README.md)
    check_export.py --engine deepinfer --model DIR [--prompts FILE.bin] [--tokens 160]
                                                             lets the engine run DIR first, on windows of a shard of ids

Prints every figure beside its limit; exit status 1 if one is outside.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from engram import token_classes
from model import Config, Model
from read_checkpoint import fill

# Relative RMS. model.py sums all experts in one product and keeps no BF16 probabilities, so it is not the strict oracle.
INJECTED, FREE, DRAFT = 3e-2, 5e-2, 2e-2
CONFIDENCE = 0.1    # largest difference of a logit


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


def relative(a, b):
    return ((a.double() - b.double()).norm() / b.double().norm()).item()


def classes_of(checkpoint, config):
    path = os.path.join(checkpoint, "engram_classes.bin")
    if os.path.exists(path):
        return np.fromfile(path, "<i4").tolist()
    return token_classes(checkpoint, config)


def selections(out, config, tokens):
    """Stored selections of the prompt as masks, layer -> [1,T,n] uint8."""
    result = {}
    for l in config.idx_src:
        chosen = out.get(f"official.sel_prompt.{l}", out.get(f"sel_prompt.{l}")).long()
        n = tokens // config.ratios[l]
        mask = torch.zeros(tokens, n + 1, dtype=torch.uint8)
        mask.scatter_(1, torch.where(chosen < 0, n, chosen), 1)
        result[l] = mask[None, :, :n]
    return result


def check_text(model, out, figures, free):
    ids = out["prompt_ids"].long()[None]
    want = out["official.prompt_logits"]
    for i, l in enumerate(model.c.eng_layers):
        same = (model.engram_ids(i, ids)[0].int() == out["engram_rows"][:, i]).float().mean().item()
        figures.at_least(f"engram rows of layer {l}, equal", same, 1)
    for name, inject, limit in (("injected", selections(out, model.c, ids.shape[1]), INJECTED), ("free", None, FREE)):
        if inject is None and not free:
            continue
        got = model.logits(model(ids, select=True, inject=inject)["h"])[0]
        figures.at_most(f"logits, {name}, relative RMS", relative(got, want), limit)
        if inject:
            best = want.topk(2, -1).values
            clear = best[:, 0] - best[:, 1] > 4 * limit * want.square().mean().sqrt()
            same = got.argmax(-1) == want.argmax(-1)
            figures.at_least(f"argmax equal where clear ({int(clear.sum())} of {len(same)})", (same | ~clear).float().mean().item(), 1)


def check_draft(model, out, temperatures, figures):
    main, decoded, T = out["main_hidden"][None], out["official.decode_tokens"].long(), out["prompt_ids"].shape[0]
    got, worst = [], 0.0
    for k in (0, 9, 23):
        anchor = decoded[k + 1].view(1, 1)
        hidden = model.draft(anchor, torch.tensor([[T + k + 1]]), main[:, :T + k + 1])[0][0]
        prev, rows = anchor.view(1), []
        for j in range(model.c.draft_block):
            logits, confidence = model.draft_logits(hidden[j:j + 1], prev)
            rows.append(logits[0])
            worst = max(worst, abs(confidence.item() / temperatures[j] - out["draft_conf"][k, j].item()))
            prev = out["draft_ids"][k, j].long().view(1)
        got.append(torch.stack(rows))
    figures.at_most("draft logits, relative RMS", relative(torch.stack(got), out["draft_logits_at_0_9_23"]), DRAFT)
    figures.at_most("draft confidence, largest difference", worst, CONFIDENCE)


@torch.no_grad()
def check(folder, figures, free=True):
    """free: also with the model's own selections, which are near ties where an indexer has learnt nothing."""
    checkpoint = os.path.join(folder, "checkpoint")
    with open(os.path.join(checkpoint, "config.json")) as file:
        document = json.load(file)
    config = Config.from_hf(document)
    temperatures = document["text_config"].get("dspark_confidence_temperatures", [1.0] * config.draft_block)
    model = fill(Model(config, classes_of(checkpoint, config)), checkpoint)
    model.quant = True
    with safe_open(os.path.join(folder, "outputs.safetensors"), "pt") as file:
        out = {k: file.get_tensor(k) for k in file.keys()}
    if "decode_tokens" in out:
        out["official.decode_tokens"] = out["decode_tokens"]
    check_text(model, out, figures, free)
    check_draft(model, out, temperatures, figures)


def record(engine, model, prompt, folder):
    """Runs the engine on a prompt (ids, or None: a random one of its own); the golden folder is then complete."""
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
