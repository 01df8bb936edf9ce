#!/usr/bin/env python3
"""Compiles every variant of the schedule at once, one process each, into the caches that TORCHINDUCTOR_CACHE_DIR and
TRITON_CACHE_DIR name; a run that starts afterwards finds them.

    precompile.py [--skip N] FLAGS    flags of train.py; --skip leaves out the first N variants
"""
import subprocess
import sys
import time

import numpy as np

import train
from step import Step, variant_of

LIMIT_S = 240


def variants(schedule):
    return list(dict.fromkeys(variant_of(p, s) for p in schedule["phases"] for s in p["shapes"]))


def random_batch(trainer, v):
    rng, c = np.random.default_rng(1), trainer.config
    return dict(ids=rng.integers(20, c.vocab, (v.B, v.T)).astype(np.int32), weights=np.full((v.B, v.T), 1 / v.T, np.float32),
                kinds=np.full((v.B, v.T), 2, np.uint8), task=np.zeros(v.B, np.int64),
                anchors=rng.integers(1, v.T - c.draft_block - 1, (v.B, trainer.o.blocks // v.B)))


def compile_one(options, i):
    options.graph = 0
    trainer = train.Trainer(options)
    v = variants(trainer.schedule)[i]
    step = Step(trainer.model, trainer.optimizer, trainer.stats, options, v, trainer.peers)
    begun = time.monotonic()
    for _ in range(2):
        step.run(random_batch(trainer, v), 0.0)
    trainer.synchronize()
    print(f"compiled {v}: {time.monotonic() - begun:.0f} s", flush=True)


def main():
    arguments = sys.argv[1:]
    one, skip = None, 0
    if arguments[:1] == ["--one"]:
        one, arguments = int(arguments[1]), arguments[2:]
    elif arguments[:1] == ["--skip"]:
        skip, arguments = int(arguments[1]), arguments[2:]
    options = train.parser().parse_args(arguments)
    if one is not None:
        return compile_one(options, one)
    with open(options.schedule) as file:
        count = len(variants(train.json.load(file)))
    children = [subprocess.Popen([sys.executable, __file__, "--one", str(i), *arguments]) for i in range(skip, count)]
    end = time.monotonic() + LIMIT_S
    for child in children:
        try:
            child.wait(max(1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            print("precompile: a variant took too long and was given up; the run compiles it itself", flush=True)


if __name__ == "__main__":
    main()
