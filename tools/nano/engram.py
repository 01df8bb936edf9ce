"""Engram classes of a tokenizer, as the engine derives them."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from engram_classes import class_table  # noqa: E402


def token_classes(model_folder, config):
    """Classes [vocab] of model_folder/tokenizer.json; config: model.Config."""
    path = os.path.join(model_folder, "tokenizer.json")
    with open(path, encoding="utf-8") as file:
        table = class_table(json.load(file))
    found = max(table) + 1
    if found != config.eng_classes or len(table) > config.vocab:
        raise ValueError(f"{path}: {found} classes of {len(table)} ids, expected the config's engram_compressed_vocab_size "
                         f"{config.eng_classes} and at most {config.vocab} ids")
    return table + [0] * (config.vocab - len(table))
