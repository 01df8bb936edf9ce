#!/usr/bin/env python3
"""Opens what corpus.py packed, on the training machine.   unpack.py CARRY OUT"""
import lzma
import pathlib
import sys


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: unpack.py CARRY OUT")
    carry, out = map(pathlib.Path, sys.argv[1:])
    packed = sorted(carry.glob("*.xz"))
    if not packed:
        sys.exit(f"unpack: no .xz file in {carry}: corpus.py writes them")
    out.mkdir(parents=True, exist_ok=True)
    for path in packed:
        try:
            (out / path.stem).write_bytes(lzma.decompress(path.read_bytes()))
        except lzma.LZMAError as error:
            sys.exit(f"unpack: {path}: {error}: copy it again")


if __name__ == "__main__":
    main()
