"""A toy model folder, material and schedule, with which the whole chain runs on the CPU in seconds."""
import json
import os
import shutil

import numpy as np

from engram import class_table

HERE = os.path.dirname(os.path.abspath(__file__))
TINY = os.path.join(HERE, "..", "tiny")
PHASES = [("A", [[64, 2, 1.0]], False, False, "off"), ("B", [[64, 2, 1.0]], True, False, "off"),
          ("C", [[128, 1, 1.0]], True, False, "joint"), ("D", [[64, 2, 0.5], [128, 1, 0.5]], True, True, "joint"),
          ("E", [[64, 2, 1.0]], True, True, "only")]


def make(folder, words_of_text=20000):
    """-> flags of train.py for folder/model, folder/material and folder/schedule.json."""
    model, material = os.path.join(folder, "model"), os.path.join(folder, "material")
    os.makedirs(model, exist_ok=True)
    os.makedirs(material, exist_ok=True)
    shutil.copyfile(os.path.join(TINY, "tokenizer.json"), os.path.join(model, "tokenizer.json"))
    with open(os.path.join(TINY, "tokenizer.json"), encoding="utf-8") as file:
        classes = max(class_table(json.load(file))) + 1
    with open(os.path.join(TINY, "tiny.json")) as file:
        config = json.load(file)
    del config["vision_config"]
    config["text_config"]["engram_compressed_vocab_size"] = classes
    with open(os.path.join(model, "config.json"), "w") as file:
        json.dump(config, file)
    rng = np.random.default_rng(1)
    for name in ("train", "held"):
        rng.integers(40, 120, words_of_text).astype(np.uint16).tofile(os.path.join(material, name + ".bin"))
    schedule = {"warm_steps": 2, "mixes": {"toy": {"text": 0.25, "copy": 0.5, "copy_again": 0.25}},
                "phases": [dict(name=n, share=1, shapes=s, select=sel, quant=q, draft=d, rate=[3e-3, 1e-3], mix="toy")
                           for n, s, sel, q, d in PHASES]}
    with open(os.path.join(folder, "schedule.json"), "w") as file:
        json.dump(schedule, file)
    return ["--model", model, "--material", material, "--rows", os.path.join(HERE, "fake_rows.py"), "--schedule",
            os.path.join(folder, "schedule.json"), "--device", "cpu", "--compile", "0", "--processes", "2", "--kl", "16",
            "--blocks", "8", "--first-steps", "1", "--least-phase", "-1000",
            "--calibration-batches", "2"]
