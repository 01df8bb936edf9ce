#!/usr/bin/env python3
"""Copies a golden folder without the tensors that are too large for the repository.

usage: trim_outputs.py GOLDEN_DIR OUT_DIR [TENSOR ...]

Keeps the last 32 rows of `official.prompt_logits` if that is named, and leaves out the other named tensors of outputs.safetensors, the checkpoint's shards and tensors.tsv (the checkpoint is
generated again from its seed). Standard library only.
"""
import json
import os
import shutil
import struct
import sys


def trim(source, target, drop):
    with open(source, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        payload = file.read()
    metadata = header.pop("__metadata__", None)
    kept, offset, blobs = {}, 0, []
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        if name in drop and name == "official.prompt_logits":
            rows, vocab = entry["shape"]
            name, entry = name + "_tail32", {**entry, "shape": [32, vocab]}
            begin += (rows - 32) * vocab * 4
        elif name in drop:
            continue
        kept[name] = {**entry, "data_offsets": [offset, offset + end - begin]}
        blobs.append(payload[begin:end])
        offset += end - begin
    if metadata:
        kept["__metadata__"] = metadata
    text = json.dumps(kept, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(target, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def main():
    source, target, drop = sys.argv[1], sys.argv[2], set(sys.argv[3:])
    os.makedirs(target + "/checkpoint", exist_ok=True)
    for name in ("config.json", "generator.json", "engram_classes.bin"):
        shutil.copyfile(f"{source}/checkpoint/{name}", f"{target}/checkpoint/{name}")
    trim(source + "/outputs.safetensors", target + "/outputs.safetensors", drop)


if __name__ == "__main__":
    main()
