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
import toy
from batches import ANSWER, CONTEXT, Batches, loss_weights
from checkpoint import current, load_weights, save_weights
from engram import token_classes
from export import fp4, fp8
from model import Config, Model
from numerics import weight4, weight8
from stats import answers_right

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
