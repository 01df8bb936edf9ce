#!/usr/bin/env python3
"""The whole chain at toy size on the CPU: rows, all phases, weights, export, and the engine's logits on what was exported.

    DI_ENGINE=deepinfer train_test.py     needs torch and safetensors
"""
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from contextlib import redirect_stdout

import numpy as np
import torch
from safetensors.torch import load_file, save_file

import check_export
import draft
import peers
import toy
from batches import ANSWER, CONTEXT, Batches, loss_weights
from checkpoint import current, load_weights, save_weights
from engram import token_classes
from export import fp4, fp8
from model import Config, Model
from numerics import weight4, weight8
from optimizer import Optimizer
from stats import Stats, answers_right
from step import Step, Variant
from train import parser

HERE = os.path.dirname(os.path.abspath(__file__))
ENGINE = os.environ.get("DI_ENGINE")
SECONDS = "20"   # of all phases; each makes a step at least


def train(flags, *more):
    environment = dict(os.environ, PATH=os.path.dirname(sys.executable) + ":" + os.environ["PATH"])
    return subprocess.run([sys.executable, os.path.join(HERE, "train.py"), *flags, *more], capture_output=True, text=True, env=environment)


def model_of(folder):
    with open(os.path.join(folder, "config.json")) as file:
        config = Config.from_hf(json.load(file))
    return Model(config, token_classes(folder, config))


class Chain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.flags = toy.make(cls.folder.name)
        cls.out = os.path.join(cls.folder.name, "out")
        cls.run_ = train(cls.flags, "--out", cls.out, "--deadline-at", SECONDS, "--reserve", "2")
        if cls.run_.returncode != 0:
            raise AssertionError(cls.run_.stdout + cls.run_.stderr)
        with open(os.path.join(cls.out, "log.jsonl")) as file:
            cls.log = [json.loads(line) for line in file]
        cls.model = os.path.join(cls.folder.name, "model")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_phase_trains_and_says_how(self):
        trained = [r for r in self.log if r["event"] == "train"]
        self.assertEqual(sorted({r["phase"] for r in trained}), ["A", "B", "C", "D", "E"])
        self.assertTrue(all(r["bad"] == 0 and r["tasks"] for r in trained))
        self.assertTrue(all("accepted" in r for r in trained if r["phase"] in "CDE"))
        self.assertEqual(self.log[-1]["event"], "done")

    def test_weights_resume(self):
        model = model_of(self.model)
        meta = load_weights(os.path.join(self.out, "weights"), model)
        self.assertEqual(meta["phase"], "E")
        self.assertEqual(len(meta["temperatures"]), model.c.draft_block)
        run = train(self.flags, "--out", os.path.join(self.folder.name, "again"), "--init", current(os.path.join(self.out, "weights")),
                    "--from-phase", "E", "--deadline-at", "4", "--reserve", "1")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_a_loss_that_is_not_finite_stops_the_run(self):
        model = model_of(self.model)
        load_weights(os.path.join(self.out, "weights"), model)
        root = os.path.join(self.folder.name, "poisoned")
        folder = save_weights(root, model, {"tokens": 0, "phases": []})
        poisoned = os.path.join(folder, "weights-01.safetensors")
        state = load_file(poisoned)
        state["layers.3.wq_a"][0, 0] = float("nan")
        save_file(state, poisoned)
        run = train(self.flags, "--out", root, "--init", folder, "--to-phase", "A", "--deadline-at", "6", "--reserve", "1", "--bad-steps", "0")
        self.assertEqual(run.returncode, 3, run.stdout + run.stderr)
        self.assertIn("first: parameter layers.3.wq_a", run.stdout)

    def test_a_model_that_is_not_finite_is_not_saved(self):
        model = model_of(self.model)
        with torch.no_grad():
            model.embed[0, 0] = float("inf")
        with self.assertRaisesRegex(ValueError, "embed: not finite"):
            save_weights(os.path.join(self.folder.name, "never"), model, {})

    def test_the_export_costs_little(self):
        run = subprocess.run([sys.executable, os.path.join(HERE, "export_loss.py"), "--model", os.path.join(self.out, "export"), "--weights",
                              os.path.join(self.out, "weights"), "--held", os.path.join(self.folder.name, "material", "held.bin"),
                              "--tokens", "64", "--windows", "2"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    @unittest.skipUnless(ENGINE, "DI_ENGINE is not set")
    def test_the_engine_computes_the_same(self):
        exported = os.path.join(self.out, "export")
        run = subprocess.run([ENGINE, "inspect", exported], capture_output=True, text=True)
        self.assertIn("differences from the specification: none", run.stdout, run.stderr)
        figures, said = check_export.Figures(), io.StringIO()
        prompt = check_export.prompts(os.path.join(self.folder.name, "material", "held.bin"), 100, 1)[0]
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(said):
            check_export.record(ENGINE, exported, prompt, folder)
            check_export.check(folder, figures, free=False)
        self.assertEqual(figures.bad, 0, said.getvalue())
        self.assertGreater(len(said.getvalue().splitlines()), 5)


def step_on(folder, rank, world, port, rows, file):
    """Process `rank` of `world`: two steps on some of four rows; writes what it has afterwards."""
    os.environ.update({peers.RANK: str(rank), peers.WORLD: str(world), peers.PORT: str(port), "GLOO_SOCKET_IFNAME": "lo"})
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = model_of(os.path.join(folder, "model"))
    with torch.no_grad():
        model.embed += rank * 0.01 * (world > 1)   # what align() must put right
    options = parser().parse_args([*toy.make(folder), "--out", folder])
    variant, rng = Variant(64, len(rows), True, False, "off"), np.random.default_rng(3)
    arrays = dict(ids=rng.integers(40, 120, (4, 64)).astype(np.int32), weights=np.full((4, 64), 1 / 64, np.float32),
                  kinds=np.full((4, 64), ANSWER, np.uint8), task=np.zeros(4, np.int64), anchors=np.ones((4, options.blocks // len(rows)), np.int64))
    together = peers.Peers("cpu")
    apart = together.align([*model.parameters(), *model.buffers()])
    step = Step(model, Optimizer(model, 0.5), Stats(["text"], len(model.c.idx_src), model.c.draft_block, "cpu"), options, variant, together)
    step.run({name: array[rows] for name, array in arrays.items()}, 1e-3)
    first = step.shared[:sum(p.numel() for p in step.parts)].clone()   # without the expert loads
    step.run({name: array[rows] for name, array in arrays.items()}, 1e-3)
    torch.save(dict(apart=apart, first=first, state=model.state_dict()), file)


class Together(unittest.TestCase):
    def test_two_processes_compute_what_one_does_with_the_rows_of_both(self):
        with tempfile.TemporaryDirectory() as folder:
            toy.make(folder)
            spawn, files = torch.multiprocessing.get_context("spawn"), [os.path.join(folder, f"{i}.pt") for i in range(3)]
            processes = [spawn.Process(target=step_on, args=(folder, 0, 1, 0, [0, 1, 2, 3], files[2]))]
            port = peers.free_port()
            processes += [spawn.Process(target=step_on, args=(folder, i, 2, port, [2 * i, 2 * i + 1], files[i])) for i in range(2)]
            for process in processes:
                process.start()
            for process in processes:
                process.join()
                self.assertEqual(process.exitcode, 0)
            a, b, alone = map(torch.load, files)
        self.assertAlmostEqual(a["apart"], 0.01, 4)
        self.assertTrue(torch.equal(a["first"], b["first"]))
        self.assertTrue(all(torch.equal(a["state"][name], b["state"][name]) for name in a["state"]))
        error = (a["first"] - alone["first"]).norm() / alone["first"].norm()
        self.assertLess(error.item(), 5e-3)   # BF16

    def test_the_chain_in_two_processes(self):
        with tempfile.TemporaryDirectory() as folder:
            run = train(toy.make(folder), "--out", os.path.join(folder, "out"), "--deadline-at", SECONDS, "--reserve", "2", "--gpus", "2")
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            with open(os.path.join(folder, "out", "log.jsonl")) as file:
                log = [json.loads(line) for line in file]
        self.assertEqual(log[0]["processes"], 2)
        self.assertEqual([r["apart"] for r in log if r["event"] == "aligned"], [0.0] * 5)
        self.assertEqual(sorted({r["phase"] for r in log if r["event"] == "train"}), ["A", "B", "C", "D", "E"])
        self.assertEqual(log[-1]["event"], "done")

    def test_a_process_that_fails_ends_the_others(self):
        program = """import os, sys, time
sys.path.insert(0, sys.argv[1])
import peers
if not peers.launched():
    sys.exit(peers.launch(2))
if os.environ[peers.RANK] == "1":
    sys.exit(3)
time.sleep(600)
"""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "fails.py")
            with open(path, "w") as file:
                file.write(program)
            run = subprocess.run([sys.executable, path, HERE], timeout=300)
        self.assertEqual(run.returncode, 3)


class Parts(unittest.TestCase):
    def test_answers_get_their_share_of_a_row(self):
        kinds = np.zeros(100, np.uint8)
        kinds[10:90], kinds[95] = CONTEXT, ANSWER
        w = loss_weights(kinds, 0.1)
        self.assertAlmostEqual(w.sum(), 1, 5)
        self.assertAlmostEqual(w[95], 0.9, 5)

    def test_an_answer_counts_only_whole(self):
        y = torch.arange(10)[None]
        kinds = torch.tensor([[0, 1, 2, 2, 1, 2, 2, 2, 0, 2]])
        pred = y.clone()
        pred[0, 6] = 0
        right, count = answers_right(pred, y, kinds)
        self.assertEqual((right.item(), count.item()), (2, 3))

    def test_a_generator_that_ends_is_started_again(self):
        command = [sys.executable, os.path.join(HERE, "fake_rows.py"), "--rows", "3"]
        source = Batches([command], {"copy": 1.0}, ["copy", "text"], 32, 2, None, 1, 0.1, 5, 4)
        try:
            for _ in range(4):
                self.assertEqual(source.get()["ids"].shape, (2, 32))
            self.assertIn("ended after 3 rows", source.said()[0])
        finally:
            source.stop()

    def test_a_generator_without_rows_is_an_error(self):
        source = Batches([["false"]], {"copy": 1.0}, ["copy", "text"], 32, 2, None, 1, 0.1, 5, 4)
        with self.assertRaisesRegex(RuntimeError, "false .*expected rows of 97 bytes"):
            source.get()

    def test_exported_grids_are_those_of_training(self):
        torch.manual_seed(1)
        w = torch.randn(64, 64) * 0.1
        codes, scale = fp8(w)
        back = codes.float() * (2.0 ** (scale.view(torch.uint8).float() - 127)).repeat_interleave(32, 0).repeat_interleave(32, 1)
        self.assertTrue(torch.equal(back, weight8(w)))
        self.assertTrue(torch.equal(weight4(weight4(w)), weight4(w)))
        self.assertEqual(fp4(w)[0].shape, (64, 32))

    def test_temperatures_calibrate(self):
        torch.manual_seed(1)
        true = torch.rand(20000, 2)
        ok = torch.rand(20000, 2) < true
        logits = torch.logit(true) * 3                     # over-confident by a temperature of 3
        alive = torch.stack((torch.ones(20000), torch.ones(20000)), 1)
        temperatures, before, after = draft.fit_temperatures(logits, ok, alive)
        self.assertAlmostEqual(temperatures[0], 3, delta=0.4)
        self.assertLess(after[0], 0.02)
        self.assertGreater(before[0], 0.05)

    def test_drafts_end_where_the_row_leaves_the_model(self):
        ok = torch.tensor([[1., 1, 0, 1, 1], [1, 1, 1, 1, 1]])
        alive = torch.tensor([[1., 1, 1, 1, 1], [1, 1, 0, 0, 0]])
        self.assertEqual(draft.chain(ok, alive).sum(1).tolist(), [2, 2])


if __name__ == "__main__":
    torch.set_num_threads(1)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
