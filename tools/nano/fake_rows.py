#!/usr/bin/env python3
"""Writes rows in the protocol of nano_rows, for tests without it: answers repeat the words of their question.

Takes the flags of nano_rows that the trainer gives; a task's number is its place in --mix.
"""
import argparse
import sys

import numpy as np

BOS, EOS, FIRST_WORD = 0, 1, 40


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model")
    p.add_argument("--material")
    p.add_argument("--mix", required=True)
    p.add_argument("--row-tokens", type=int, required=True)
    p.add_argument("--seed", type=int, required=True)
    p.add_argument("--rows", type=int, default=0, help="0: endless")
    o = p.parse_args()
    rng = np.random.default_rng(o.seed)
    shares = np.array([float(part.split("=")[1]) for part in o.mix.split(",")])
    count = 0
    while not o.rows or count < o.rows:
        count += 1
        ids, weights = [], []
        while len(ids) < o.row_tokens:
            words = (FIRST_WORD + rng.integers(0, 8, 4)).tolist()
            ids += [BOS, *words, *words, EOS]
            weights += [0] + [1] * 4 + [2] * 5
        row = np.array(ids[:o.row_tokens], "<u2").tobytes() + np.array(weights[:o.row_tokens], np.uint8).tobytes()
        try:
            sys.stdout.buffer.write(bytes([rng.choice(len(shares), p=shares / shares.sum())]) + row)
        except BrokenPipeError:
            return


if __name__ == "__main__":
    main()
