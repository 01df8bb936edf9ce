#!/usr/bin/env python3
"""What the export costs: mean loss on held-out text of the trained weights in BF16 and of the exported checkpoint, grids on.

    export_loss.py --model models/nano --weights DIR --held build/nano/material/held.bin

Exit status 1 if the second is more than 2 % larger.
"""
import argparse
import json
import os
import sys

import numpy as np
import torch

from checkpoint import load_weights
from engram import token_classes
from model import Config, Model
from read_checkpoint import fill
from regions import FN

LIMIT = 0.02


@torch.no_grad()
def loss(model, windows, quant):
    """windows [n,T] ids -> mean negative log likelihood of a token."""
    model.quant = quant
    total = 0.0
    for ids in windows:
        h = model(ids[None], select=True)["h"][0, :-1]
        total += FN["head_loss"](h, model.head, ids[1:])[0].mean().item()
    return total / len(windows)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", required=True, help="the exported checkpoint")
    p.add_argument("--weights", required=True, help="of train.py, what was exported")
    p.add_argument("--held", required=True)
    p.add_argument("--tokens", type=int, default=1024)
    p.add_argument("--windows", type=int, default=16)
    o = p.parse_args()
    with open(os.path.join(o.model, "config.json")) as file:
        config = Config.from_hf(json.load(file))
    ids = np.fromfile(o.held, "<u2").astype(np.int64)
    starts = np.linspace(0, len(ids) - o.tokens, o.windows).astype(int)
    windows = torch.stack([torch.from_numpy(ids[at:at + o.tokens]) for at in starts])
    trained, exported = (Model(config, token_classes(o.model, config)) for _ in range(2))
    load_weights(o.weights, trained)
    fill(exported, o.model)
    plain, grids = loss(trained, windows, False), loss(exported, windows, True)
    more = grids / plain - 1
    print(f"held-out loss on {o.windows} x {o.tokens} tokens: BF16 {plain:.4f}, exported {grids:.4f}, {more:+.2%} (limit {LIMIT:.0%})")
    return 0 if more <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
