"""Training batches: rows of nano_rows processes and windows of text, made ready in threads.

nano_rows writes per row: u8 task number, T u16 token ids, T u8 weights (0 = no target, 1 = context, 2 = part of an
answer), little-endian. Every row's share of the loss is the same, however few answer tokens it holds, so a task's share of
the loss is its share of rows; inside a row the answers get all but `context_share` of it.
"""
import os
import queue
import subprocess
import threading

import numpy as np

TEXT = "text"           # the task name of language-modelling rows
CONTEXT, ANSWER = 1, 2  # weights of nano_rows
ROWS_AHEAD = 64         # of each process, in memory
BATCHES_AHEAD = 4
MOST_STARTS = 50        # of one process


class RowProcess(threading.Thread):
    """One nano_rows process and the thread that reads it. A process that ends after some rows is started again, with
    another seed: a long run is worth more than the row that it could not make."""

    def __init__(self, command, seed, row_tokens, rows):
        super().__init__(daemon=True)
        self.command, self.seed, self.row_tokens, self.rows = command, seed, row_tokens, rows
        self.error, self.said, self.stopped, self.process = None, [], False, None
        self.start()

    def run(self):
        for attempt in range(MOST_STARTS):
            if self.stopped:
                return
            command = [*self.command, "--seed", str(self.seed + attempt * 1_000_003)]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            count = self._read()
            if self.stopped:
                self.process.kill()
                return
            self.process.wait()
            said = self.process.stderr.read().decode(errors="replace").strip()[-300:] or "no message"
            self.said.append(f"seed {command[-1]} ended after {count} rows: {said}")
            if count == 0:
                break
        self.error = f"{' '.join(command)}: expected rows of {1 + 3 * self.row_tokens} bytes without end, found: {self.said[-1]}"

    def _read(self):
        """Until the end or stop(); -> rows read."""
        size, count = 1 + 3 * self.row_tokens, 0
        while not self.stopped:
            raw = self.process.stdout.read(size)
            if len(raw) < size:
                break
            ids = np.frombuffer(raw, "<u2", self.row_tokens, 1)
            self._put((raw[0], ids, np.frombuffer(raw, np.uint8, self.row_tokens, 1 + 2 * self.row_tokens)))
            count += 1
        return count

    def _put(self, row):
        while not self.stopped:
            try:
                self.rows.put(row, timeout=0.5)
                return
            except queue.Full:
                continue

    def stop(self):
        self.stopped = True
        if self.process:
            self.process.kill()


class Text:
    """Windows of a shard of token ids (uint16)."""

    def __init__(self, path, seed):
        self.ids = np.memmap(path, np.uint16, "r")
        self.rng = np.random.default_rng(seed)

    def window(self, tokens):
        if len(self.ids) <= tokens:
            raise ValueError(f"the text shard has {len(self.ids)} tokens, expected more than a row's {tokens}")
        at = int(self.rng.integers(0, len(self.ids) - tokens))
        return np.asarray(self.ids[at:at + tokens])


def loss_weights(kinds, context_share):
    """weights of nano_rows [T] -> F32 weights of the targets 1..T-1 that add up to 1 (all 0: nothing to learn)."""
    answer, context = (kinds == ANSWER).astype(np.float32), (kinds == CONTEXT).astype(np.float32)
    answer[0] = context[0] = 0
    a, c = answer.sum(), context.sum()
    if a == 0 or c == 0:
        return (answer + context) / max(a + c, 1)
    return answer * ((1 - context_share) / a) + context * (context_share / c)


class Batches(threading.Thread):
    """An endless queue of batches of one shape. get() -> dict of arrays: ids [B,T] int32, weights [B,T] F32, kinds [B,T] uint8,
    task [B] int64 (index into names), anchors [B,A] int64 positions for draft blocks."""

    def __init__(self, commands, mix, names, row_tokens, rows, text_path, seed, context_share, draft_block, num_anchors):
        """commands: of nano_rows processes, --mix, --row-tokens and --seed not yet given; mix: task -> share, of which TEXT
        comes from text_path; names: all tasks of the run."""
        super().__init__(daemon=True)
        made = {k: v for k, v in mix.items() if k != TEXT and v > 0}
        self.text_share = mix.get(TEXT, 0) / sum(mix.values())
        self.number = [names.index(task) for task in [*made, TEXT]]
        self.T, self.B, self.context_share = row_tokens, rows, context_share
        self.block, self.num_anchors = draft_block, num_anchors
        self.rng = np.random.default_rng(seed)
        self.text = Text(text_path, seed) if self.text_share > 0 else None
        self.made = queue.Queue(maxsize=ROWS_AHEAD * max(len(commands), 1))
        self.ready = queue.Queue(maxsize=BATCHES_AHEAD)
        self.error, self.stopped = None, False
        share = ",".join(f"{k}={v}" for k, v in made.items())
        self.processes = [] if not made else [
            RowProcess([*command, "--mix", share, "--row-tokens", str(row_tokens)], seed * 1000 + i, row_tokens, self.made)
            for i, command in enumerate(commands)]
        self.start()

    def run(self):
        try:
            while not self.stopped:
                batch = self._batch()
                while batch is not None and not self.stopped:
                    try:
                        self.ready.put(batch, timeout=0.5)
                        break
                    except queue.Full:
                        continue
        except Exception as error:  # shown by get(), in the thread that waits
            self.error = repr(error)

    def _row(self):
        if self.text_share > 0 and (not self.processes or self.rng.random() < self.text_share):
            return len(self.number) - 1, self.text.window(self.T), np.full(self.T, CONTEXT, np.uint8)
        while not self.stopped:
            try:
                return self.made.get(timeout=1)
            except queue.Empty:
                self._check()
        return None

    def _check(self):
        if self.processes and all(process.error for process in self.processes):
            raise RuntimeError(self.processes[0].error)

    def said(self):
        """What processes that ended said; training goes on while one is left."""
        return [line for process in self.processes for line in process.said]

    def _batch(self):
        B, T = self.B, self.T
        out = dict(ids=np.empty((B, T), np.int32), weights=np.empty((B, T), np.float32), kinds=np.empty((B, T), np.uint8),
                   task=np.empty(B, np.int64), anchors=np.empty((B, self.num_anchors), np.int64))
        for b in range(B):
            row = self._row()
            if row is None:
                return None
            out["task"][b], out["ids"][b], out["kinds"][b] = self.number[row[0]], row[1], row[2]
            out["weights"][b] = loss_weights(row[2], self.context_share)
            out["anchors"][b] = self._anchors(row[2])
        return out

    def _anchors(self, kinds):
        """Positions of draft blocks: where an answer follows (three of four, if there are any), or anywhere."""
        last = self.T - self.block - 1
        answers = np.flatnonzero(kinds[2:last + 1] == ANSWER) + 1
        pick = self.rng.integers(1, last, self.num_anchors)
        if len(answers):
            some = self.num_anchors * 3 // 4
            pick[:some] = answers[self.rng.integers(0, len(answers), some)]
        return pick

    def get(self):
        while True:
            try:
                return self.ready.get(timeout=1)
            except queue.Empty:
                if self.error:
                    raise RuntimeError(f"no more rows: {self.error}")

    def stop(self):
        self.stopped = True
        for process in self.processes:
            process.stop()


def row_command(program, model, material):
    return [program, "--model", model, "--material", material]


def refused(command, tasks, row_tokens):
    """Tasks of which nano_rows does not make a row -> what it says, by task."""
    flags = ["--row-tokens", str(row_tokens), "--seed", "1", "--rows", "1"]
    children = {task: subprocess.Popen([*command, "--mix", f"{task}=1", *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                for task in tasks}
    result = {}
    for task, child in children.items():
        out, said = child.communicate()
        if child.returncode != 0 or len(out) != 1 + 3 * row_tokens:
            result[task] = said.decode(errors="replace").strip()[-300:] or f"exit status {child.returncode}, {len(out)} bytes"
    return result


def text_path(material, name):
    path = os.path.join(material, name + ".bin")
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: expected a shard of token ids (tools/nano/corpus.py makes it)")
    return path
