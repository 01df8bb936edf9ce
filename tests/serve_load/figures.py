#!/usr/bin/env python3
"""The server's figures as a table: each beside what is aimed at, with the machine's load.

Usage: figures.py BINARY MODEL [PART...]   parts: streams share pattern vanish
The exit status is 1 if something was not served; figures alone fail nothing.
"""

import json
import os
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

import streams
import vanish
from server_process import Server

ROUNDS = 5
SHARE_ROUNDS = 11  # single pairs vary by 5 % where a machine has neighbours
REQUESTS = 32
PROMPT_TOKENS, OUTPUT_TOKENS = 128, 512
# 20 to 100 times slower to mask than ordinary patterns: large counted repetitions of wide classes.
SLOW_PATTERN = "[a-z0-9._%+-]{1,64}@[a-z0-9.-]{1,255}"


def row(what, found, aim):
    print(f"| {what} | {found} | {aim} |", flush=True)


def bench_serve(binary, url, *flags):
    run = subprocess.run(
        [binary, "bench", "serve", "--base-url", url, "--json", *map(str, flags)],
        capture_output=True, text=True,
    )  # fmt: skip
    if not run.stdout:
        raise SystemExit(run.stderr)
    result = json.loads(run.stdout)
    if result["failed"]:
        raise SystemExit(f"bench serve: {result['failed']} failed: {result['first_error']}")
    return result


def many_streams(binary):
    """1,000 streams of 10 tokens/s for 30 s."""
    for surface in ([], ["--chat"]):
        options = streams.parse([binary, "--pin", *surface])
        figures, failures = streams.measure(options)
        if failures:
            raise SystemExit("; ".join(failures))
        late = figures["late_ms"]
        name = "chat" if surface else "completions"
        row(
            f"{figures['streams']} streams of 10 tokens/s, {name}: lateness p50 / p99 / max",
            f"{late['p50']:.1f} / {late['p99']:.1f} / {late['max']:.1f} ms",
            "p99 50 ms",
        )
        row("the same: requests sent at once until they arrived, p99",
            f"{figures['arrival_ms_p99']:.0f} ms", "")  # fmt: skip
        row(
            "the same: processor time of the server's thread a token, its share",
            f"{figures['server_us_per_token']:.0f} us, {figures['server_share']:.0%}",
            "100 us",
        )


class ServerTime:
    """Processor time of a server's threads between two moments, by name."""

    def __init__(self, server):
        self.server, self.before = server, server.thread_seconds()

    def since(self):
        now = self.server.thread_seconds()
        return {name: now[name] - self.before.get(name, 0) for name in now}


def throughput(binary):
    """Tokens/s of the engine alone."""
    run = subprocess.run(
        [binary, "bench", "throughput", "--json", "--part", "batch",
         "--batch-requests", str(REQUESTS), "--prompt-tokens", str(PROMPT_TOKENS),
         "--decode-tokens", str(OUTPUT_TOKENS // 2), "--log-level", "error"],
        capture_output=True, text=True,
    )  # fmt: skip
    if not run.stdout:
        raise SystemExit(run.stderr)
    return json.loads(run.stdout)["batch_tokens_per_s"]


def share(binary, model):
    """32 streams over HTTP between two runs of the engine alone, which is idle meanwhile."""
    ratios, raw, shares, generator = [], [], [], []
    threads = {}
    flags = ["--max-concurrency", REQUESTS, "--num-prompts", REQUESTS, "--preconnect",
             "--random-input-len", PROMPT_TOKENS, "--random-output-len", OUTPUT_TOKENS,
             "--vocab-size", vocab_size(model)]  # fmt: skip
    with Server([binary, "serve", "--port", "0"]) as server:
        bench_serve(binary, server.url, *flags, "--seed", 1000)  # warms up
        before = throughput(binary)
        for i in range(SHARE_ROUNDS):
            spent = ServerTime(server)
            result = bench_serve(binary, server.url, *flags, "--seed", i + 1)
            threads = spent.since()
            after = throughput(binary)
            # A step waits for its slowest thread, so what the generator takes of one core it takes
            # of every step that it falls into.
            own = result["generator_share"]
            raw.append(result["peak_tokens_per_s"] / ((before + after) / 2))
            ratios.append(raw[-1] / (1 - own))
            generator.append(own)
            shares.append(server_part(threads) / sum(threads.values()))
            before = after
    row(f"{REQUESTS} streams over HTTP / `bench throughput`, less the generator's share",
        f"median {statistics.median(ratios):.3f} ({', '.join(f'{r:.3f}' for r in sorted(ratios))})",
        "0.97")  # fmt: skip
    row("the same with the generator's share left in", f"{statistics.median(raw):.3f}", "")
    row("the generator's own share of one core", f"{statistics.median(generator):.1%}", "")
    row("processor time of the server's threads / of its process",
        f"{statistics.median(shares):.2%}", "3 %")  # fmt: skip
    spent = ", ".join(f"{n} {s:.2f} s" for n, s in sorted(threads.items(), key=lambda t: -t[1]))
    row("threads of the last run", spent, "")


def vocab_size(model):
    with open(os.path.join(model, "config.json")) as file:
        return json.load(file)["text_config"]["vocab_size"]


SERVER_THREADS = ("di-http", "di-background", "di-grammar")


def server_part(threads):
    """Of the threads that the HTTP front brings; they are named."""
    found = sum(seconds for name, seconds in threads.items() if name.startswith(SERVER_THREADS))
    if found == 0:
        raise SystemExit(f"no thread is called {SERVER_THREADS}: {threads}")
    return found


class SlowRequest:
    """One request with a slow pattern, again and again for as long as the block runs."""

    def __init__(self, server):
        self.server, self.ended = server, threading.Event()
        self.num_tokens = 0

    def __enter__(self):
        self.thread = threading.Thread(target=self.ask, daemon=True)
        self.thread.start()
        end = time.monotonic() + 60
        while self.num_tokens == 0:  # its grammar is built by then
            if time.monotonic() > end:
                raise SystemExit("the request with the slow pattern gives no token within 60 s")
            time.sleep(0.05)
        return self

    def ask(self):
        while not self.ended.is_set():
            body = {"messages": [{"role": "user", "content": "Addresses, please."}],
                    "max_tokens": 2000, "stream": True, "temperature": 1,
                    "guided_regex": SLOW_PATTERN}  # fmt: skip
            request = urllib.request.Request(
                self.server.url + "/v1/chat/completions",
                json.dumps(body).encode(),
                {"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=120) as answer:
                for line in answer:
                    self.num_tokens += line.startswith(b"data: {")
                    if self.ended.is_set():
                        return

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def pattern(binary):
    """TPOT of 31 requests beside one more: an ordinary one, or one with a slow pattern."""

    def tpot(server, count, seed):
        flags = ["--max-concurrency", count, "--num-prompts", count, "--preconnect", "--seed", seed,
                 "--random-input-len", 64, "--random-output-len", OUTPUT_TOKENS]  # fmt: skip
        return bench_serve(binary, server.url, *flags)["tpot_s"]["p50"]

    ratios, tokens = [], 0
    with Server([binary, "serve", "--port", "0"]) as server:
        tpot(server, REQUESTS, 999)  # warms up
        for i in range(ROUNDS):
            plain = tpot(server, REQUESTS, 2 * i + 1)
            with SlowRequest(server) as slow:
                ratios.append(tpot(server, REQUESTS - 1, 2 * i + 2) / plain)
                tokens += slow.num_tokens
    row("TPOT of 31 requests beside one with a slow pattern / beside one without",
        f"{statistics.median(ratios):.3f} ({', '.join(f'{r:.3f}' for r in sorted(ratios))}), "
        f"{tokens} tokens of the slow one", "1.05")  # fmt: skip


def vanishing(binary):
    code = subprocess.run([sys.executable, vanish.__file__, binary, "--clients", "500"],
                          capture_output=True, text=True)  # fmt: skip
    lines = code.stdout.strip().splitlines() or [code.stderr]
    row("500 clients that vanish", "; ".join(lines[1:]), "all as before, memory 2 %")
    if code.returncode:
        raise SystemExit("clients that vanish leave something behind")


def main(binary, model, *parts):
    parts = parts or ("streams", "share", "pattern", "vanish")
    load = os.getloadavg()[0]
    print(f"Load before: {load:.2f} of {os.cpu_count()} cores"
          f"{' (BUSY: these figures mean little)' if load > 0.5 else ''}\n")
    print("| figure | measured | aimed at |\n|---|---|---|")
    if "streams" in parts:
        many_streams(binary)
    if "share" in parts:
        share(binary, model)
    if "pattern" in parts:
        pattern(binary)
    if "vanish" in parts:
        vanishing(binary)


if __name__ == "__main__":
    main(*sys.argv[1:])
