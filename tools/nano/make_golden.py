#!/usr/bin/env python3
"""A golden folder (tests/golden/README.md) whose outputs are reference.py's:  make_golden.py --model DIR --prompt FILE --out DIR

The prompt is text with the tokens of the conversation format, after which the model goes on. OUT/checkpoint gets the engram
classes and links to the model's files. --small leaves out the layer streams and all but the last row of the prompt's
logits: what is in the repository.
"""
import argparse
import os
import sys

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from engram import token_classes
from golden import record
from read_checkpoint import open_model

STREAMS = ("layer_X", "layer_pre", "mid_X", "mid_pre", "engram_X", "decode_layer_X", "decode_layer_pre")
TAIL = 1   # the folder has to be small; the 24 decode rows say the rest


def link_checkpoint(model, folder, classes):
    """folder: a golden folder; its checkpoint/ is made."""
    checkpoint = os.path.join(folder, "checkpoint")
    os.makedirs(checkpoint, exist_ok=True)
    for name in sorted(os.listdir(model)):
        target = os.path.join(checkpoint, name)
        if name == "config.json" or name.startswith("model"):
            if os.path.lexists(target):
                os.remove(target)
            os.symlink(os.path.relpath(os.path.join(model, name), os.path.realpath(checkpoint)), target)
    np.array(classes, "<i4").tofile(os.path.join(checkpoint, "engram_classes.bin"))


def small(tensors):
    kept = {name: value for name, value in tensors.items() if name.split(".")[0] not in STREAMS}
    kept["official.prompt_logits_tail32"] = kept.pop("official.prompt_logits")[-TAIL:].contiguous()
    return kept


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("model", "prompt", "out"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--small", action="store_true")
    o = p.parse_args()
    model, temperatures = open_model(o.model, token_classes)
    with open(o.prompt, encoding="utf-8") as file:
        prompt = Tokenizer.from_file(os.path.join(o.model, "tokenizer.json")).encode(file.read(), add_special_tokens=False).ids
    tensors = record(model, prompt, temperatures)
    link_checkpoint(os.path.abspath(o.model), o.out, model.classes.tolist())
    path = os.path.join(o.out, "outputs.safetensors")
    save_file(small(tensors) if o.small else tensors, path)
    print(f"{path}: {len(tensors)} tensors, {len(prompt)} prompt tokens, {os.path.getsize(path)} B")


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
