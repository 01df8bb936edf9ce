"""What the oracle adapters share: golden folders, token classes, figures. NumPy only.

A golden folder holds checkpoint/ (here with its shards) and outputs.safetensors, the latter from
the official arithmetic or from `deepinfer selftest --record`. tests/golden/README.md has more.
"""
import argparse
import json
import os
import struct

import numpy as np

_PLAIN = {"F32": np.float32, "I32": np.int32, "U8": np.uint8, "I8": np.int8, "I64": np.int64}


class Safetensors:
    """Read-only view of one file; BF16 comes out as float32, FP8 and E8M0 as uint8."""

    def __init__(self, path):
        self._data = np.memmap(path, np.uint8, "r")
        (size,) = struct.unpack("<Q", self._data[:8].tobytes())
        self.header = json.loads(self._data[8:8 + size].tobytes())
        self.header.pop("__metadata__", None)
        self._base = 8 + size

    def __contains__(self, name):
        return name in self.header

    def __getitem__(self, name):
        entry = self.header[name]
        begin, end = (self._base + offset for offset in entry["data_offsets"])
        raw = self._data[begin:end].tobytes()
        if entry["dtype"] == "BF16":
            value = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            value = np.frombuffer(raw, _PLAIN.get(entry["dtype"], np.uint8))
        return value.reshape(entry["shape"])


class Golden:
    """Prompt [T], greedy tokens [25] and logits of a golden folder."""

    def __init__(self, folder):
        self.checkpoint = os.path.join(folder, "checkpoint")
        self.outputs = Safetensors(os.path.join(folder, "outputs.safetensors"))
        self.prompt = self.outputs["prompt_ids"].tolist()
        self.tokens = self.outputs["official.decode_tokens"].tolist()
        self.steps = len(self.tokens) - 1  # step k feeds tokens[k]
        tail = "" if "official.prompt_logits" in self.outputs else "_tail32"
        self.prompt_logits = self.outputs["official.prompt_logits" + tail]  # the last rows of T
        self.decode_logits = self.outputs["official.decode_logits"]  # [24, V]
        limits = {"free": 5e-2, "injected": 3e-2}  # relative RMS of logits
        path = os.path.join(folder, "limits.json")
        if os.path.exists(path):
            with open(path) as file:
                limits |= json.load(file)
        self.limit, self.injected_limit = limits["free"], limits["injected"]


def text_config(checkpoint):
    with open(os.path.join(checkpoint, "config.json")) as file:
        return json.load(file)["text_config"]


def token_classes(checkpoint):
    """Engram token class of every id, int32 [vocab]."""
    return np.fromfile(os.path.join(checkpoint, "engram_classes.bin"), np.int32)


def logits_figures(got, want, limit):
    """Error of logits `got` against `want`, both [rows, vocab]; `got` may have more rows in front.

    rel_rms is |got - want| / |want|, median and worst are the same by row. A row is clear when its
    two largest wanted logits are further apart than 4 x limit x RMS: there two correct
    implementations have the same argmax.
    """
    want = np.asarray(want, np.float64)
    got = np.asarray(got, np.float64)[-len(want):]
    best = np.sort(want, axis=1)
    clear = best[:, -1] - best[:, -2] > 4 * limit * np.sqrt(np.mean(want ** 2))
    same = got.argmax(1) == want.argmax(1)
    by_row = np.linalg.norm(got - want, axis=1) / np.linalg.norm(want, axis=1)
    return {"rows": len(want), "limit": limit,
            "rel_rms": float(np.linalg.norm(got - want) / np.linalg.norm(want)),
            "median": float(np.median(by_row)), "worst": float(by_row.max()),
            "argmax_equal": int(same.sum()), "clear_rows": int(clear.sum()),
            "clear_argmax_wrong": int((clear & ~same).sum())}


def parse_arguments(description, add=lambda parser: None):
    """The command line that every adapter has: a golden folder, and where the figures go."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", help="a golden folder with shards in checkpoint/")
    parser.add_argument("--json", help="file for the figures; without it they are printed")
    add(parser)
    return parser.parse_args()


def report(figures, path):
    text = json.dumps(figures, indent=1)
    if path is None:
        print(text, flush=True)
        return
    with open(path, "w") as file:
        file.write(text + "\n")
