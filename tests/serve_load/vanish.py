#!/usr/bin/env python3
"""Clients that vanish, at every stage of a request, leave nothing behind: no running or waiting
request, no page, no descriptor, no memory.

What leaks grows with every round of clients; what an allocator keeps for later (ASan's above all)
levels off. So memory that grew too much gets further rounds, and fails if it grows in all of them.

Usage: vanish.py BINARY [--clients N] [--seed N] [--together N]
Last line: `N passed, N failed`.
"""

import argparse
import json
import random
import socket
import struct
import sys
import threading
import time

from server_process import Server

MEMORY_GROWTH_MAX = 0.02  # in at least one round
NUM_ROUNDS_MAX = 4
# Small caches, so that they are soon full: memory that is planned for, but touched late, would
# count as growth.
FLAGS = ["--max-model-len", "2048", "--max-num-seqs", "12", "--kv-cache-bytes", "2000000",
         "--swa-slots", "16", "--host-cache-bytes", "500000"]  # fmt: skip


def request_bytes(body, path="/v1/chat/completions"):
    text = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(text)}\r\n\r\n"
    )
    return head.encode() + text


def chat(rng, **fields):
    """A long prompt, so that there is a prefill to vanish from, and an answer without end."""
    words = " ".join(str(rng.randrange(1000)) for _ in range(rng.choice([5, 100, 400])))
    return {
        "messages": [{"role": "user", "content": words}],
        "max_tokens": 4000,
        "ignore_eos": True,
        **fields,
    }


def read_some(connection, num_bytes):
    """Up to that many bytes, as far as they come within two seconds."""
    connection.settimeout(2)
    try:
        while num_bytes > 0:
            piece = connection.recv(min(num_bytes, 65536))
            if not piece:
                return
            num_bytes -= len(piece)
    except TimeoutError:
        pass


# Each takes an open connection as far as the stage that it names.
def connected(connection, rng):
    pass


def half_a_head(connection, rng):
    data = request_bytes(chat(rng))
    connection.sendall(data[: rng.randrange(1, data.index(b"\r\n\r\n"))])


def half_a_body(connection, rng):
    data = request_bytes(chat(rng))
    connection.sendall(data[: rng.randrange(data.index(b"\r\n\r\n") + 4, len(data))])


def sent(connection, rng):
    """Waits or is in prefill."""
    connection.sendall(request_bytes(chat(rng, stream=rng.random() < 0.5)))
    time.sleep(rng.random() * 0.2)


def in_the_headers(connection, rng):
    connection.sendall(request_bytes(chat(rng, stream=True)))
    read_some(connection, rng.randrange(1, 40))


def streaming(connection, rng):
    connection.sendall(request_bytes(chat(rng, stream=True, n=rng.choice([1, 1, 3]))))
    read_some(connection, rng.randrange(200, 6000))


def not_reading(connection, rng):
    """Lets the stream run into its socket."""
    connection.sendall(request_bytes(chat(rng, stream=True)))
    time.sleep(rng.random() * 0.5)


def constrained(connection, rng):
    body = chat(rng, stream=True, guided_regex="[a-z]{2000}", ignore_eos=False)
    connection.sendall(request_bytes(body))
    read_some(connection, rng.randrange(1, 3000))


def pipelined(connection, rng):
    """A second request behind one that runs."""
    connection.sendall(request_bytes(chat(rng, stream=True)) + request_bytes(chat(rng)))
    read_some(connection, rng.randrange(1, 2000))


def many_prompts(connection, rng):
    body = {"prompt": ["one", "two", "three"], "max_tokens": 3000, "ignore_eos": True, "n": 2}
    connection.sendall(request_bytes(body, "/v1/completions"))
    time.sleep(rng.random() * 0.2)


def answered(connection, rng):
    connection.sendall(request_bytes(chat(rng, max_tokens=2, ignore_eos=False)))
    read_some(connection, 100)


def nonsense(connection, rng):
    connection.sendall(rng.randbytes(rng.randrange(1, 300)))
    read_some(connection, 100)


STAGES = [
    connected, half_a_head, half_a_body, sent, in_the_headers, streaming, not_reading, constrained,
    pipelined, many_prompts, answered, nonsense,
]  # fmt: skip


def vanish(port, stage, rng):
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    try:
        stage(connection, rng)
        if rng.random() < 0.5:  # a reset instead of an orderly end
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    except (ConnectionError, TimeoutError):
        pass  # the server was quicker to close
    finally:
        connection.close()


def run_clients(server, num_clients, together, seed):
    """All of them, `together` at a time, each stage as often as any other."""
    order = [STAGES[i % len(STAGES)] for i in range(num_clients)]
    random.Random(seed).shuffle(order)
    lock = threading.Lock()

    def work():
        while True:
            with lock:
                if not order:
                    return
                idx, stage = len(order), order.pop()
            vanish(server.port, stage, random.Random(seed * 100_003 + idx))

    threads = [threading.Thread(target=work) for _ in range(together)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def fill_caches(server):
    """Every page, slot and copy has been used once after this."""

    def ask(seed):
        rng = random.Random(seed)
        ids = [rng.randrange(100, 1000) for _ in range(640)]
        server.post("/v1/completions", {"prompt": ids, "max_tokens": 20, "ignore_eos": True})

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(13)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def state(server):
    """After everything has settled."""
    stats = server.wait_idle()
    end = time.monotonic() + 5
    descriptors = server.num_descriptors()
    while time.monotonic() < end:  # sockets that are just being closed
        time.sleep(0.1)
        now = server.num_descriptors()
        if now == descriptors:
            break
        descriptors = now
    return {
        "running": stats["running"],
        "waiting": stats["waiting"],
        "pages used": stats["pages"]["used"],
        "descriptors": descriptors,
        "memory": server.resident_bytes(),
    }


def growth(before, after):
    return after["memory"] / before["memory"] - 1


def differences(states):
    """One line for each figure that is not as it was; states[0] is before the first round."""
    found = [
        f"{name}: {before[name]} before, {after[name]} after"
        for before, after in zip(states, states[1:])
        for name in before
        if name != "memory" and before[name] != after[name]
    ]
    least = min(growth(before, after) for before, after in zip(states, states[1:]))
    if least > MEMORY_GROWTH_MAX:
        found.append(f"memory: {least:.1%} more or above in each of {len(states) - 1} rounds, "
                     f"at most {MEMORY_GROWTH_MAX:.0%}")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--together", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    start = time.monotonic()
    with Server([options.binary, "serve", "--port", "0", *FLAGS]) as server:
        fill_caches(server)
        run_clients(server, options.clients, options.together, 999)
        states = [state(server)]
        cancelled = server.stats()["requests"]["cancelled"]
        for idx in range(NUM_ROUNDS_MAX):
            run_clients(server, options.clients, options.together, options.seed + idx)
            states.append(state(server))
            if growth(*states[-2:]) <= MEMORY_GROWTH_MAX:
                break
        cancelled = server.stats()["requests"]["cancelled"] - cancelled
        alive = server.post("/v1/completions", {"prompt": "A dog", "max_tokens": 4})
    print(f"{time.monotonic() - start:.1f} s\nbefore: {states[0]}")
    for before, after in zip(states, states[1:]):
        print(f"after {options.clients} clients: {after}, memory {growth(before, after):+.2%}")
    print(f"{cancelled} requests cancelled")
    failures = differences(states)
    if cancelled < options.clients // 5:
        failures.append(f"only {cancelled} requests were cancelled: the clients miss their stages")
    if not alive["choices"][0]["text"]:
        failures.append("answers nobody afterwards")
    for failure in failures:
        print(f"FAILED: {failure}")
    print(f"{0 if failures else 1} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
