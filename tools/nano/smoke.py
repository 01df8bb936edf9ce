#!/usr/bin/env python3
"""A short look at every variant on this machine: step times with and without a graph, memory, finite values, real rows.

Takes the flags of train.py; --deadline-at is the time for all of it. Run precompile.py first, or the first steps are slow.
"""
import sys
import time

import torch

import train
from precompile import variants
from step import Step

REAL_SECONDS = 25   # of training on rows in the first variant
STEPS = 12          # a measurement
DRAFT_STEPS = 100


def timed(trainer, step, source, steps):
    """-> milliseconds a step; the learning rate is that of a long run."""
    trainer.synchronize()
    begun = time.monotonic()
    for _ in range(steps):
        step.run(source.get(), 1e-3)
    trainer.synchronize()
    return (time.monotonic() - begun) / steps * 1e3


def look(trainer, phase, shape, v, seed):
    """-> one line of the table."""
    o, cuda = trainer.o, trainer.o.device == "cuda"
    source = trainer.batches(phase, shape, seed)
    try:
        if cuda:
            torch.cuda.reset_peak_memory_stats()
        o.graph = 0
        step = Step(trainer.model, trainer.optimizer, trainer.stats, o, v, trainer.peers)
        first = timed(trainer, step, source, 3) * 3 / 1e3
        eager = timed(trainer, step, source, STEPS)
        peak = torch.cuda.max_memory_allocated() / 2 ** 30 if cuda else 0
        o.graph = 1
        step.capturing, step.count = cuda, 3
        step.run(source.get(), 1e-3)
        graph = timed(trainer, step, source, DRAFT_STEPS if v.draft == "only" else STEPS) if step.graph else float("nan")
        bad, finite = trainer.optimizer.bad_steps.item(), trainer.stats.not_finite.tolist()
        wrong = f"NOT FINITE: {step.first_not_finite()}" if bad else "finite"
        tokens = v.B * v.T
        return (f"{str(tuple(v)):38s} first {first:6.1f} s | eager {eager:6.1f} ms {tokens / eager:5.0f} ktok/s | "
                f"graph {graph:6.1f} ms {tokens / graph:5.0f} ktok/s | peak {peak:5.1f} GiB | {wrong}, draft inputs not finite in {finite} steps")
    finally:
        source.stop()


def main():
    o = train.parser().parse_args()
    trainer = train.Trainer(o)
    trainer.drop_refused()
    pairs = [(p, s) for p in trainer.schedule["phases"] for s in p["shapes"]]
    seen, table = set(), []
    for i, (phase, shape) in enumerate(pairs):
        v = train.variant_of(phase, shape)
        if v in seen:
            continue
        seen.add(v)
        if trainer.now() > o.deadline_at:
            table.append(f"{v}: no time left")
            continue
        try:
            table.append(look(trainer, phase, shape, v, 1000 + i))
        except Exception as error:  # the others are still worth a look
            table.append(f"{v}: FAILED: {type(error).__name__}: {str(error)[-1500:]}")
        print(table[-1], flush=True)
        if i == 0:
            real(trainer, phase, shape, o)
    trainer.synchronize()
    figures = trainer.stats.read()
    print(train.line_of(dict(t=trainer.now(), event="all rows", **figures)))
    print("\n".join(table))
    return 0 if len(seen) == len(variants(trainer.schedule)) and not any("FAILED" in t or "NOT FINITE" in t for t in table) else 1


def real(trainer, phase, shape, o):
    """Training as in the long run, for REAL_SECONDS."""
    source = trainer.batches(phase, shape, 5)
    o.graph = 1
    try:
        trainer.train(dict(phase, rate=[3e-3, 3e-3]), trainer.now() + min(REAL_SECONDS, o.deadline_at / 4), [source])
    finally:
        source.stop()


if __name__ == "__main__":
    sys.exit(main())
