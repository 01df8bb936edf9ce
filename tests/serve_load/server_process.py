"""A `deepinfer serve` of our own: started, looked into, stopped. Python's standard library only."""

import json
import os
import re
import subprocess
import time
import urllib.request


class Server:
    """Runs until the end of the `with` block. `command`: the program and its flags, before ours."""

    def __init__(self, command, cpus=None):
        self.command, self.cpus = command, cpus

    def __enter__(self):
        pin = ["taskset", "-c", self.cpus] if self.cpus else []
        self.process = subprocess.Popen(
            pin + self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found.group(1))
                self.url = found.group(0)
                # Read on, so that the server never waits for a full pipe.
                self.drain = subprocess.Popen(
                    ["cat"], stdin=self.process.stdout, stdout=subprocess.DEVNULL
                )
                return self
        raise SystemExit(f"{' '.join(self.command)} did not start:\n{''.join(lines)}")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.drain.wait()

    @property
    def pid(self):
        return self.process.pid

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return answer.read().decode()

    def post(self, path, body):
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def stats(self):
        return json.loads(self.get("/stats"))

    def num_descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def resident_bytes(self):
        with open(f"/proc/{self.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def thread_seconds(self):
        """{thread name: processor seconds}; threads of one name are summed."""
        seconds = {}
        for thread in os.listdir(f"/proc/{self.pid}/task"):
            folder = f"/proc/{self.pid}/task/{thread}"
            try:
                with open(f"{folder}/comm") as file:
                    name = file.read().strip()
                with open(f"{folder}/schedstat") as file:
                    spent = int(file.read().split()[0]) / 1e9
            except FileNotFoundError:
                continue  # has ended
            seconds[name] = seconds.get(name, 0) + spent
        return seconds

    def wait_idle(self, seconds=60):
        """Until nothing runs or waits and no connection but ours is open."""
        end = time.monotonic() + seconds
        while True:
            stats = self.stats()
            if stats["running"] == 0 and stats["waiting"] == 0:
                return stats
            if time.monotonic() > end:
                raise SystemExit(f"still busy after {seconds} s: {stats}")
            time.sleep(0.02)
