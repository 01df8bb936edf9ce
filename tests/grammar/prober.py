"""grammar_probe as a Python object. A probe that dies or hangs answers {"code": "crashed"} and is started again."""
import json
import select
import subprocess
import time


class Prober:
    def __init__(self, program, tokenizer, limit_s=60):
        self.command, self.limit_s, self.process = [program, tokenizer], limit_s, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stop()

    def _stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def ask(self, request):
        if not self.process:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            self.process.stdin.write((json.dumps(request) + "\n").encode())
            self.process.stdin.flush()
            line = self._line(time.monotonic() + self.limit_s)
        except BrokenPipeError:
            line = b""
        if not line.endswith(b"\n"):
            self._stop()
            return {"code": "crashed", "message": f"no answer within {self.limit_s} s, or the probe died"}
        return json.loads(line)

    def _line(self, deadline):
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            piece = self.process.stdout.read1(1 << 20) if ready else b""
            if not piece:
                break
            line += piece
        return line
