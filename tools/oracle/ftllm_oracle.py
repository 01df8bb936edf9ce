"""fastllm (`ftllm`), a C++ code base, on its CPU library: against a golden folder, or timed.

The wheel's GPU library does not load without CUDA; the package then takes its CPU library, which
needs AVX2. It reads config and weights as they are and wants three more files beside them
(engram_meta.json and a stub tokenizer), which are written into a scratch folder full of links.
It hands out logits of the last position only and decodes greedily by itself, so rows are compared
up to the first token that differs. Single calls were seen to hang: run it under a time limit.

    ftllm_oracle.py FOLDER [--json FILE]
    ftllm_oracle.py FOLDER --bench 128,32 --dtype bfloat16 --threads 1
"""
import contextlib
import ctypes
import json
import os
import sys
import tempfile
import time

import numpy as np

import golden


def engram_multipliers(text):
    """One odd number an n-gram place and table: PCG64 seeded with 10007 x layer."""
    bound = max(1, (np.iinfo(np.int64).max // text["engram_compressed_vocab_size"]) // 2)
    draw = [np.random.default_rng(10007 * layer).integers(0, bound, text["engram_max_ngram_size"])
            for layer in text["engram_layer_ids"]]
    return [[str(2 * int(value) + 1) for value in row] for row in draw]


def stub_tokenizer(vocab_size):
    empty = ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder")
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
             "vocab": {"t%d" % i: i for i in range(vocab_size)}, "merges": []}
    return {"version": "1.0", "added_tokens": [], "model": model, **dict.fromkeys(empty)}


def prepare(checkpoint, folder):
    """Link the weights into `folder` and add the files that fastllm wants."""
    text = golden.text_config(checkpoint)
    files = {
        "engram_meta.json": {
            "token_map": golden.token_classes(checkpoint).tolist(),
            "compressed_vocab_size": text["engram_compressed_vocab_size"],
            "pad_token_id": text["engram_pad_token_id"],
            "engram_layer_ids": text["engram_layer_ids"], "multipliers": engram_multipliers(text)},
        "tokenizer.json": stub_tokenizer(text["vocab_size"]),
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast",
                                  "bos_token": "t0", "eos_token": "t1"}}
    for name in os.listdir(checkpoint):
        if name not in files:
            os.symlink(os.path.join(os.path.abspath(checkpoint), name), os.path.join(folder, name))
    for name, value in files.items():
        with open(os.path.join(folder, name), "w") as file:
            json.dump(value, file)


@contextlib.contextmanager
def quiet_stdout():
    """Loading prints pages to file descriptor 1."""
    sys.stdout.flush()
    saved, null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    try:
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(null)


class Oracle:
    def __init__(self, checkpoint, dtype="float32", threads=1):
        self.scratch = tempfile.TemporaryDirectory(prefix="ftllm-oracle-")
        prepare(checkpoint, self.scratch.name)
        self.vocab = golden.text_config(checkpoint)["vocab_size"]
        os.environ["FASTLLM_SKIP_WARMUP"] = "1"
        os.environ["FASTLLM_DSV41_DISABLE_PREFIX_CACHE"] = "1"
        os.environ["FT_THREADS"] = str(threads)
        with quiet_stdout():
            from ftllm import llm
            self.lib = llm.fastllm_lib
            llm.set_cpu_threads(threads)
            llm.set_device_map({"cpu": 1})
            llm.set_device_map({"cpu": 1}, True)  # the experts
            self.model = llm.model(self.scratch.name, dtype=dtype).model

    def _launch(self, ids, length, want_logits):
        array = (ctypes.c_int * len(ids))(*ids)
        return self.lib.launch_response_llm_model(
            self.model, len(ids), array, ctypes.c_int(length), ctypes.c_int(0),
            ctypes.c_bool(False), ctypes.c_float(1.0), ctypes.c_int(1), ctypes.c_float(1.0),
            ctypes.c_float(1.0), ctypes.c_bool(want_logits), ctypes.c_int(0), None)

    def generate(self, ids, length):
        """Greedy tokens and the logits that each was chosen from."""
        handle = self._launch(ids, length, True)
        buffer = (ctypes.c_float * self.vocab)()
        tokens, rows = [], []
        while (token := self.lib.fetch_response_logits_llm_model(self.model, handle, buffer)) >= 0:
            tokens.append(token)
            rows.append(np.ctypeslib.as_array(buffer).copy())
        return tokens, np.array(rows)

    def time(self, ids, length):
        """(prefill seconds, decode seconds) of one answer of `length` + 1 tokens."""
        begin, stamps = time.perf_counter(), []
        handle = self._launch(ids, length + 1, False)
        while self.lib.fetch_response_llm_model(self.model, handle) >= 0:
            stamps.append(time.perf_counter())
        return stamps[0] - begin, stamps[-1] - stamps[0]


def compare(folder):
    ref = golden.Golden(folder)
    tokens, rows = Oracle(ref.checkpoint).generate(ref.prompt, len(ref.tokens))
    pairs = enumerate(zip(tokens, ref.tokens))
    same = next((i for i, (got, want) in pairs if got != want), len(tokens))
    # Row i, which token i was chosen from, saw tokens [0, i): comparable while those agree.
    want = np.concatenate([ref.prompt_logits[-1:], ref.decode_logits])
    count = min(same + 1, len(rows), len(want))
    return {"greedy": golden.logits_figures(rows[:count], want[:count], ref.limit),
            "greedy tokens equal": same, "greedy tokens": len(ref.tokens)}


def bench(checkpoint, prompt_length, decode_length, dtype, threads):
    """Best of two timed runs after a warm one, tokens per second."""
    oracle = Oracle(checkpoint, dtype, threads)
    ids = np.random.default_rng(0).integers(3, oracle.vocab - 1, prompt_length).tolist()
    oracle.time(ids, decode_length)
    prefill, decode = (min(seconds) for seconds in zip(*[oracle.time(ids, decode_length)
                                                         for _ in range(2)]))
    return {"dtype": dtype, "threads": threads, "prefill_tokens": prompt_length,
            "prefill_tokens_per_s": prompt_length / prefill, "decode_tokens": decode_length,
            "decode_tokens_per_s": decode_length / decode}


def main():
    def add(parser):
        parser.add_argument("--bench", metavar="PROMPT,DECODE", help="time this many tokens")
        parser.add_argument("--dtype", default="float32", help="activations, with --bench")
        parser.add_argument("--threads", type=int, default=1, help="with --bench")
    args = golden.parse_arguments("fastllm against a golden folder, or timed", add)
    if args.bench:
        lengths = [int(length) for length in args.bench.split(",")]
        checkpoint = os.path.join(args.folder, "checkpoint")
        golden.report(bench(checkpoint, *lengths, args.dtype, args.threads), args.json)
    else:
        golden.report(compare(args.folder), args.json)
    os._exit(0)  # the library keeps threads that do not end


if __name__ == "__main__":
    main()
