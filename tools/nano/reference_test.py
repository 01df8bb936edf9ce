#!/usr/bin/env python3
"""The PyTorch definition against the official arithmetic, and the engine against it layer by layer on the bundled model.

    DI_ENGINE=deepinfer DI_TINY=DIR reference_test.py     DIR: tests/golden/tiny with its checkpoint; needs torch and safetensors
"""
import io
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from contextlib import redirect_stdout

import torch

import check_export
import reference
from golden import Layers, load
from read_checkpoint import open_model

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
NANO = os.path.join(ROOT, "tests", "golden", "nano")


class Official(unittest.TestCase):
    """Limits of the golden data, without exception."""

    def test_every_figure_of_tiny_is_inside(self):
        figures, said = check_export.Figures(), io.StringIO()
        with redirect_stdout(said):
            check_export.check(os.environ["DI_TINY"], figures)
        self.assertEqual(figures.bad, 0, said.getvalue())
        self.assertGreater(len(said.getvalue().splitlines()), 30)

    @torch.no_grad()
    def test_a_missing_sink_is_seen(self):
        model, _ = open_model(os.path.join(os.environ["DI_TINY"], "checkpoint"), check_export.classes_of)
        stored = load(os.path.join(os.environ["DI_TINY"], "outputs.safetensors"))
        saved = reference.attend
        reference.attend = lambda q, keys, visible, sink: saved(q, keys, visible, torch.full_like(sink, -1e9))
        try:
            tap = Layers(stored, model.c.layers)
            reference.Reference(model).run(stored["prompt_ids"], tap)
        finally:
            reference.attend = saved
        self.assertLess(min(figure.value() for figure in tap.attention), 0.9)


class Bundled(unittest.TestCase):
    def test_the_engine_computes_every_layer_as_pytorch_does(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, os.path.join(HERE, "make_golden.py"), "--model", os.path.join(ROOT, "models", "nano"),
                            "--prompt", os.path.join(NANO, "prompt.txt"), "--out", folder], check=True, capture_output=True)
            shutil.copy(os.path.join(NANO, "limits.json"), folder)
            run = subprocess.run([os.environ["DI_ENGINE"], "selftest", "--golden", folder], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("layer by layer, decode steps, layer 11", run.stdout)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
