#!/usr/bin/env python3
"""Many slow streams on one server thread: a paced engine, the load generator on the other core.

Every stream must be served in full; how late its tokens came against the engine's schedule is
printed, and judged only with --late-max.

Usage: streams.py BINARY [--streams N] [--seconds S] [--rate TOKENS_PER_S] [--chat] [--pin]
       [--late-max MS]
Last line: `N passed, N failed`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

from lateness import percentile, read
from server_process import Server


def measure(options):
    """{"served", "tokens", "late_ms": {...}, "server_share", "generator_share"} and the failures."""
    num_tokens = round(options.rate * options.seconds)
    server_cpu, client_cpu = ("0", "1") if options.pin else (None, None)
    paced = [options.binary, "serve", "--port", "0", "--scripted-engine", str(options.rate)]
    with tempfile.TemporaryDirectory() as folder, Server(paced, server_cpu) as server:
        details = os.path.join(folder, "details.jsonl")
        command = ["taskset", "-c", client_cpu] if options.pin else []
        command += [
            options.binary, "bench", "serve", "--base-url", server.url, "--json",
            "--max-concurrency", str(options.streams), "--num-prompts", str(options.streams),
            "--preconnect", "--random-input-len", "8", "--random-output-len", str(num_tokens),
            "--save-detailed", details,
        ]  # fmt: skip
        if options.chat:
            command += ["--endpoint", "/v1/chat/completions"]
        before = sum(server.thread_seconds().values())
        run = subprocess.run(command, capture_output=True, text=True)
        spent = sum(server.thread_seconds().values()) - before
        if not run.stdout:
            raise SystemExit(run.stderr)
        result = json.loads(run.stdout)
        if result["served"] == 0:
            raise SystemExit(f"none of {options.streams} served: {result['first_error']}")
        served, pieces, late, arrivals = read(details, options.rate)
    late_ms = {
        name: 1e3 * value
        for name, value in (
            ("p50", percentile(late, 0.5)),
            ("p99", percentile(late, 0.99)),
            ("max", max(late)),
        )
    }
    failures = []
    if served != options.streams or result["failed"]:
        failures.append(f"{served} of {options.streams} served: {result['first_error']}")
    if any(count != num_tokens for count in pieces):
        failures.append(f"expected {num_tokens} tokens a stream, found {sorted(set(pieces))}")
    if options.late_max is not None and late_ms["p99"] > options.late_max:
        failures.append(f"p99 lateness {late_ms['p99']:.1f} ms, at most {options.late_max}")
    figures = {
        "streams": options.streams,
        "tokens": sum(pieces),
        "seconds": result["duration_s"],
        "late_ms": late_ms,
        "arrival_ms_p99": 1e3 * percentile(arrivals, 0.99),
        "server_share": spent / result["duration_s"],
        "server_us_per_token": 1e6 * spent / max(1, sum(pieces)),
        "generator_share": result["generator_share"],
    }
    return figures, failures


def parse(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rate", type=float, default=10)
    parser.add_argument("--chat", action="store_true")
    parser.add_argument("--pin", action="store_true")
    parser.add_argument("--late-max", type=float)
    return parser.parse_args(arguments)


def main():
    figures, failures = measure(parse())
    print(json.dumps(figures))
    for failure in failures:
        print(f"FAILED: {failure}")
    print(f"{0 if failures else 1} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
