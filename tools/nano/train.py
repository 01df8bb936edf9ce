#!/usr/bin/env python3
"""Trains the bundled model: the phases of schedule.json, one process a GPU, until a deadline.

    train.py --model models/nano --material DIR --rows PROGRAM --out DIR --deadline-at 1500

Log: OUT/log.jsonl and a line on stdout every --log-every seconds. Weights: OUT/weights (checkpoint.py), after every phase and
every --save-every seconds; a later run starts from them with --init and --from-phase. Stops with exit status 3 on a loss
that stays not finite, naming the first tensor that is not.
"""
import argparse
import json
import os
import sys
import time

import torch

import draft
import export
import regions
from checkpoint import load_weights, save_weights
from engram import token_classes
from model import Config, Model
from optimizer import Optimizer
from read_checkpoint import fill
from peers import Peers, launch, launched
from batches import ANSWER, Batches, TEXT, refused, row_command, text_path
from stats import Stats
from step import Step, draft_forward, text_forward, variant_of

BAD_STEPS = 20   # not applied since the last line of the log: more, and the run stops


class NotFinite(Exception):
    pass


class Trainer:
    def __init__(self, o, peers=None):
        self.o, self.begun = o, time.monotonic()
        self.peers = peers or Peers(o.device)
        torch.manual_seed(o.seed)
        torch.set_float32_matmul_precision("high")
        if o.device == "cuda":
            torch.cuda.set_stream(torch.cuda.Stream())
        os.makedirs(o.out, exist_ok=True)
        self.log_file = open(os.path.join(o.out, "log.jsonl"), "a") if self.peers.first else None
        with open(os.path.join(o.model, "config.json")) as file:
            self.config = Config.from_hf(json.load(file))
        self.model = Model(self.config, token_classes(o.model, self.config)).to(o.device)
        self.meta = self.start_weights()
        self.align()
        self.optimizer = Optimizer(self.model, o.slow)
        with open(o.schedule) as file:
            self.schedule = json.load(file)
        self.names = sorted({task for mix in self.schedule["mixes"].values() for task in mix} | {TEXT})
        self.stats = Stats(self.names, len(self.config.idx_src), self.config.draft_block, o.device)
        self.without = set(o.without)
        self.total_steps, self.bad, self.saved_at, self.held = 0, 0.0, time.monotonic(), None
        if o.compile:
            regions.compile_regions()

    def start_weights(self):
        """Fills the model; -> what the run before said."""
        if not self.o.init:
            return dict(tokens=0, phases=[])
        if os.path.exists(os.path.join(self.o.init, "config.json")):
            fill(self.model, self.o.init)
            return dict(tokens=0, phases=[], exported=self.o.init)
        return load_weights(self.o.init, self.model)

    def now(self):
        return time.monotonic() - self.begun

    def align(self):
        """-> how far the peers' weights had come apart; 0 as long as they compute alike."""
        return self.peers.align([*self.model.parameters(), *self.model.buffers()])

    def log(self, event, **values):
        if not self.peers.first:
            return
        record = dict(event=event, t=round(self.now(), 1), **values)
        self.log_file.write(json.dumps(record) + "\n")
        self.log_file.flush()
        print(line_of(record), flush=True)

    def drop_refused(self):
        """Leaves out of the mixes what nano_rows cannot make: better a run without a task than none."""
        tasks = [name for name in self.names if name != TEXT and name not in self.without]
        for task, said in refused(row_command(self.o.rows, self.o.model, self.o.material), tasks, 2048).items():
            self.log("WITHOUT", task=task, said=said)
            self.without.add(task)

    def batches(self, phase, shape, seed):
        o = self.o
        T, B = shape[:2]
        mix = {k: v for k, v in self.schedule["mixes"][phase["mix"]].items() if k not in self.without}
        seed += 50 * self.peers.rank   # phases are 100 apart, shapes 1
        return Batches([row_command(o.rows, o.model, o.material)] * o.processes, mix, self.names, T, B, text_path(o.material, "train"),
                       seed, o.context_share, self.config.draft_block, o.blocks // B)

    def run(self):
        o = self.o
        self.drop_refused()
        phases = self.schedule["phases"]
        names = [p["name"] for p in phases]
        phases = phases[names.index(o.from_phase) if o.from_phase else 0:names.index(o.to_phase) + 1 if o.to_phase else None]
        self.log("start", processes=self.peers.world, parameters=sum(p.numel() for p in self.model.parameters()), deadline=o.deadline_at,
                 phases=[p["name"] for p in phases], init=o.init, torch=torch.__version__)
        for i, phase in enumerate(phases):
            left, = self.peers.agree(o.deadline_at - o.reserve - self.now())
            if left < o.least_phase:
                self.log("skipped", phase=phase["name"], left=round(left, 1))
                continue
            ends = self.now() + left * phase["share"] / sum(p["share"] for p in phases[i:])
            self.phase(phase, ends, o.seed + 100 * names.index(phase["name"]))
        self.log("done", tokens=self.meta["tokens"], steps=self.total_steps)

    def phase(self, phase, ends, seed):
        sources = [self.batches(phase, shape, seed + j) for j, shape in enumerate(phase["shapes"])]
        try:
            self.train(phase, ends, sources)
            self.log("aligned", apart=self.align())
            if self.peers.first:
                self.save(phase["name"])
            if self.peers.first and phase["draft"] == "only":
                self.calibrate(phase, sources[0])
        finally:
            for source in sources:
                source.stop()
        if self.peers.first and phase["quant"]:
            self.export()

    def train(self, phase, ends, sources):
        o = self.o
        steps = [Step(self.model, self.optimizer, self.stats, o, variant_of(phase, shape), self.peers) for shape in phase["shapes"]]
        for step, source in zip(steps, sources):
            before = self.now()
            for _ in range(o.first_steps):
                self.one(step, source, phase["rate"][0] * min(1, self.total_steps / self.schedule["warm_steps"]))
            self.synchronize()
            self.log("compiled", phase=phase["name"], variant=step.v._asdict(), graph=step.graph is not None,
                     seconds=round(self.now() - before, 1))
        begin, done = self.now(), [0] * len(steps)
        self.mark = (begin, self.meta["tokens"])
        self.next_held = begin
        while True:
            now = self.now()
            going, f = self.peers.agree(now < ends, (now - begin) / max(ends - begin, 1e-3))
            if not going:
                break
            i = min(range(len(steps)), key=lambda j: done[j] / phase["shapes"][j][2])
            warm = min(1.0, (self.total_steps + 1) / self.schedule["warm_steps"])
            self.one(steps[i], sources[i], warm * (phase["rate"][0] * (1 - f) + phase["rate"][1] * f))
            done[i] += steps[i].v.B * steps[i].v.T
            if self.peers.first:
                self.look_after(phase, steps, i, f, sources)
        if self.peers.first:
            self.report(phase, steps[i] if sum(done) else steps[0], 1.0, sources)
        self.meta["phases"].append(dict(name=phase["name"], seconds=round(self.now() - begin), tokens=self.meta["tokens"]))

    def look_after(self, phase, steps, i, f, sources):
        """What is due now and then, by the first of the peers alone: the others wait."""
        o, now = self.o, self.now()
        if now - self.mark[0] > o.log_every:
            self.report(phase, steps[i], f, sources)
        if now - self.saved_at > o.save_every:
            self.save(phase["name"])
        if o.held_every and now >= self.next_held:
            self.next_held = now + o.held_every
            self.held = self.held_loss(steps[0].v)

    def one(self, step, source, rate):
        step.run(source.get(), rate)
        self.total_steps += 1
        self.meta["tokens"] += step.v.B * step.v.T * self.peers.world

    def synchronize(self):
        if self.o.device == "cuda":
            torch.cuda.synchronize()

    def report(self, phase, step, f, sources):
        self.synchronize()
        now, tokens = self.now(), self.meta["tokens"]
        figures = self.stats.read()
        bad = self.optimizer.bad_steps.item()
        memory = round(torch.cuda.max_memory_allocated() / 2 ** 30, 1) if self.o.device == "cuda" else 0
        self.log("train", phase=phase["name"], f=round(f, 3), mtok=round(tokens / 1e6, 2),
                 ktok_s=round((tokens - self.mark[1]) / max(now - self.mark[0], 1e-3) / 1e3, 1), rate=round(self.optimizer.lr.item(), 6),
                 norm=round(self.optimizer.norm.item(), 3), bad=int(bad - self.bad), memory_gib=memory, held=self.held,
                 graph=step.graph is not None, ended=sum((s.said() for s in sources), [])[-3:], **figures)
        if bad - self.bad > self.o.bad_steps:
            counts = dict(zip(draft.FINITE_NAMES, self.stats.not_finite.tolist()))
            raise NotFinite(f"phase {phase['name']}: {int(bad - self.bad)} steps were not finite, expected at most {self.o.bad_steps}; "
                            f"first: {step.first_not_finite()}; draft inputs not finite in: {counts}")
        self.bad, self.mark = bad, (now, tokens)

    def held_loss(self, v):
        """Mean loss on one batch of held-out text. Gradient mode stays on: the training graphs are reused, none is compiled."""
        try:
            path = text_path(self.o.material, "held")
        except FileNotFoundError:
            return None
        held = Batches([], {TEXT: 1.0}, self.names, v.T, v.B, path, 7, 0.0, self.config.draft_block, self.o.blocks // v.B)
        try:
            batch = self.on_device(held.get(), v)
            return round(text_forward(self.model, v, batch)[1].mean().item(), 4)
        finally:
            held.stop()

    def on_device(self, arrays, v):
        batch = {k: torch.from_numpy(a).to(self.o.device) for k, a in arrays.items()}
        count = min(self.o.kl, v.T)
        batch["kl_pos"] = torch.arange(count, device=self.o.device) * (v.T // count)
        return batch

    def calibrate(self, phase, source):
        """Temperatures of the confidence, from rows that were not trained on."""
        v = variant_of(phase, phase["shapes"][0])
        parts = []
        for _ in range(self.o.calibration_batches):
            batch = self.on_device(source.get(), v)
            d = draft_forward(self.model, v, batch, text_forward(self.model, v, batch)[0], False)
            use = draft.take(batch["kinds"], batch["anchors"] + 1).flatten() == ANSWER
            parts.append([d[k][use].float().cpu() for k in ("confidence", "ok", "alive")])
        confidence, ok, alive = (torch.cat(x) for x in zip(*parts))
        temperatures, before, after = draft.fit_temperatures(confidence, ok, alive)
        self.meta["temperatures"] = temperatures
        self.log("calibrated", temperatures=temperatures, error_before=[round(v, 4) for v in before],
                 error_after=[round(v, 4) for v in after], blocks=len(ok), accepted=round(1 + draft.chain(ok, alive).sum(1).mean().item(), 3))
        self.save(phase["name"])

    def save(self, phase):
        self.saved_at = time.monotonic()
        folder = save_weights(os.path.join(self.o.out, "weights"), self.model, dict(self.meta, phase=phase))
        self.log("saved", folder=folder, seconds=round(time.monotonic() - self.saved_at, 1))

    def export(self):
        folder = os.path.join(self.o.out, "export")
        size = export.export(self.model, self.o.model, folder, self.meta.get("temperatures"))
        self.log("exported", folder=folder, bytes=size)


def line_of(record):
    """A record of the log as one line for people."""
    tasks = record.get("tasks", {})
    rest = " ".join(f"{k}={v}" for k, v in record.items() if k not in ("tasks", "event", "t"))
    text = f"[{record['t']:7.1f}] {record['event']} {rest}"
    for name, v in tasks.items():
        text += f"\n    {name:12s} " + " ".join(f"{k}={x}" for k, x in v.items())
    return text


def parser():
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", required=True, help="folder with config.json and tokenizer.json")
    p.add_argument("--material", required=True, help="folder with train.bin, held.bin and what nano_rows reads")
    p.add_argument("--rows", required=True, help="the nano_rows program")
    p.add_argument("--out", required=True)
    p.add_argument("--schedule", default=os.path.join(here, "schedule.json"))
    p.add_argument("--deadline-at", type=float, default=1500, help="seconds after the start by which everything is saved")
    p.add_argument("--reserve", type=float, default=20, help="seconds before the deadline for calibration, save and export")
    p.add_argument("--least-phase", type=float, default=10, help="seconds left under which a phase is not begun any more")
    p.add_argument("--init", help="weights of an earlier run, or a checkpoint it exported")
    p.add_argument("--from-phase")
    p.add_argument("--to-phase")
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--compile", type=int, default=int(torch.cuda.is_available()))
    p.add_argument("--graph", type=int, default=1, help="capture each step as a CUDA graph")
    p.add_argument("--gpus", type=int, default=1, help="a process for each, with the batch of the schedule for each")
    p.add_argument("--processes", type=int, default=12, help="nano_rows processes of each shape")
    p.add_argument("--without", nargs="*", default=[], help="tasks to leave out of the mixes")
    p.add_argument("--slow", type=float, default=0.5, help="learning-rate factor of norms, stream mixes, gates, sinks")
    p.add_argument("--z", type=float, default=1e-5, help="weight of the squared log-sum-exp")
    p.add_argument("--kl", type=int, default=128, help="query positions a row of the index loss")
    p.add_argument("--bias-rate", type=float, default=1e-3)
    p.add_argument("--context-share", type=float, default=0.1, help="part of a task row's loss that is not its answers'")
    p.add_argument("--blocks", type=int, default=1024, help="draft blocks a step")
    p.add_argument("--draft-weight", type=float, default=0.1, help="of the draft's loss beside the text model's")
    p.add_argument("--draft-through", type=int, default=1, help="0: the draft's loss does not reach the text model")
    p.add_argument("--calibration-batches", type=int, default=16)
    p.add_argument("--first-steps", type=int, default=5, help="steps before a phase's clock starts")
    p.add_argument("--bad-steps", type=int, default=BAD_STEPS)
    p.add_argument("--log-every", type=float, default=30)
    p.add_argument("--save-every", type=float, default=240)
    p.add_argument("--held-every", type=float, default=60, help="0: never")
    p.add_argument("--seed", type=int, default=1)
    return p


def main():
    o = parser().parse_args()
    if o.gpus > 1 and not launched():
        sys.exit(launch(o.gpus))
    try:
        trainer = Trainer(o)
        trainer.run()
        trainer.peers.end()
    except NotFinite as error:
        print(f"train: stopped: {error}", flush=True)
        sys.exit(3)


if __name__ == "__main__":
    main()
