#!/usr/bin/env python3
"""Writes tokenizer.json of the tiny checkpoint: byte-level BPE with 512 ids.

  0..15     control tokens, spelled as DeepSeek-V4.1 spells them
  16..271   the 256 bytes
  272..510  merges, learned here from the sentences below (most frequent pair first, ties by spelling)
  511       the image placeholder

Usage: make_tokenizer.py > tokenizer.json   (Python's own library only; same output everywhere)
"""
import collections
import json
import re
import sys

CONTROL = [
    "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>", "<｜System｜>", "<｜User｜>", "<｜Assistant｜>",
    "<think>", "</think>", "｜DSML｜", "<｜latest_reminder｜>", "<｜action｜>", "<｜query｜>", "<｜authority｜>",
    "<｜domain｜>", "<｜title｜>", "<｜read_url｜>",
]
IMAGE = "<｜deepseek_image｜>"
VOCAB_SIZE = 512
# Those that the real file calls special; the others are added tokens that decoding keeps.
SPECIAL = {CONTROL[0], CONTROL[1], CONTROL[2]}

TEXT = """
The engine reads a checkpoint, checks every tensor and answers in tokens. A small model has small layers, but it has all
of them: attention over a window, compressed entries that an indexer selects, experts that a router picks, tables that
are looked up by the last words, and a draft that guesses what comes next. What it writes is noise, because its weights
are numbers from a counter; what it shows is that the same numbers come out here and there. Hello, how are you? I am
well, thank you, and the weather is fine. One, two, three, four, five: the sum of the first ten numbers is fifty-five.
When the text is longer than the window, the older part is still there, in a shorter form. You can ask the same question
again and the answer will be the same, with the same seed. Please read the message before you answer it.
Der Rechner liest die Gewichte und antwortet. Le moteur lit les poids et répond. 模型读取权重，然后回答。
def main(args): return 0  # the value of the function is the number of errors
{"name": "value", "list": [1, 2, 3], "true": false}
"""

NUMBERS = r"\p{N}{1,3}"
CJK = "[一-龥぀-ゟ゠-ヿ]+"
WORDS = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
         r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""")


def byte_alphabet():
    """GPT-2's printable stand-in for every byte."""
    kept = list(range(0x21, 0x7F)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    table, next_free = {}, 0x100
    for byte in range(256):
        if byte in kept:
            table[byte] = chr(byte)
        else:
            table[byte], next_free = chr(next_free), next_free + 1
    return table


def learn_merges(words, count):
    """words: spelled in the byte alphabet. The usual BPE training, one pair at a time."""
    pieces = [(list(word), n) for word, n in sorted(collections.Counter(words).items())]
    merges = []
    while len(merges) < count:
        pairs = collections.Counter()
        for parts, n in pieces:
            for pair in zip(parts, parts[1:]):
                pairs[pair] += n
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        for parts, _ in pieces:
            i = 0
            while i + 1 < len(parts):
                if (parts[i], parts[i + 1]) == best:
                    parts[i:i + 2] = [parts[i] + parts[i + 1]]
                i += 1
    return merges


def main():
    alphabet = byte_alphabet()
    # A rougher split than the file's own (no Unicode classes in `re`), good enough to learn from.
    words = re.findall(r" ?[^\W\d_]+|\d{1,3}| ?[^\w\s]+|\s+", TEXT)
    spelled = ["".join(alphabet[b] for b in word.encode()) for word in words]
    vocab = {token: i for i, token in enumerate(CONTROL)}
    for byte in range(256):
        vocab[alphabet[byte]] = len(vocab)
    merges = learn_merges(spelled, VOCAB_SIZE - 1 - len(vocab))
    for left, right in merges:
        vocab[left + right] = len(vocab)
    vocab[IMAGE] = VOCAB_SIZE - 1
    assert len(vocab) == VOCAB_SIZE, len(vocab)

    def added(token):
        return {"id": vocab[token], "content": token, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": token in SPECIAL}

    def split(pattern):
        return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}

    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [added(token) for token in CONTROL + [IMAGE]],
        "normalizer": {"type": "Sequence", "normalizers": []},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split(NUMBERS), split(CJK), split(WORDS), byte_level]},
        "post_processor": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                  "vocab": {t: i for t, i in sorted(vocab.items(), key=lambda item: item[1])},
                  "merges": [f"{left} {right}" for left, right in merges]},
    }
    json.dump(tokenizer, sys.stdout, ensure_ascii=False, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
