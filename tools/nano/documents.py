#!/usr/bin/env python3
"""Step 1 of the corpus: unpacked packages -> OUT, one JSON document a line: {"source", "copies", "held", "text"}.

    documents.py [--sources tools/nano/sources.json] [--raw build/nano/raw] [--out build/nano/documents.jsonl]

A paragraph of more than 40 characters appears once in the whole corpus. Documentation with little prose is left out.
1 % of the documents, by hash, are held out.
"""
import argparse
import hashlib
import json
import multiprocessing
import pathlib
import sys

import fetch
import texts

HELD_OUT_ONE_IN = 100
MIN_PROSE_SHARE = 0.3  # of an HTML page's characters
MIN_REPEATABLE = 40    # characters; shorter paragraphs may come again


def read(task):
    """(recipe, path) -> its texts; runs in a worker."""
    recipe, path = task
    try:
        return [text for text in texts.RECIPES[recipe][0](path) if len(text) >= texts.MIN_DOCUMENT]
    except (OSError, ValueError, KeyError) as error:
        print(f"documents: warning: {path}: {error}", file=sys.stderr)
        return []


def hashed(text):
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def without_repeats(text, seen):
    kept = []
    for paragraph in text.split("\n\n"):
        if len(paragraph) > MIN_REPEATABLE:
            key = hashed(paragraph)
            if key in seen:
                continue
            seen.add(key)
        kept.append(paragraph)
    return "\n\n".join(kept)


def mostly_prose(text):
    return sum(len(p) for p in text.split("\n\n") if texts.is_prose(p)) >= MIN_PROSE_SHARE * len(text)


def documents(source, raw, pool, seen):
    """The clean texts of one source."""
    folder = raw / "x" / fetch.folder_name(source["package"])
    tasks = [(source["recipe"], path) for path in texts.files_of(source, folder)]
    if source.get("limit_mb"):  # a cut through all of it, not its beginning
        tasks.sort(key=lambda task: hashed(str(task[1].relative_to(folder))))
    left = source.get("limit_mb", 1000) * 1e6
    for found in pool.imap(read, tasks, chunksize=4):
        for text in found:
            text = without_repeats(text, seen)
            if len(text) < texts.MIN_DOCUMENT or (source["recipe"] == "html" and not mostly_prose(text)):
                continue
            left -= len(text)
            if left < 0:
                return
            yield text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=pathlib.Path, default=fetch.SOURCES)
    parser.add_argument("--raw", type=pathlib.Path, default=fetch.ROOT / "build/nano/raw")
    parser.add_argument("--out", type=pathlib.Path, default=fetch.ROOT / "build/nano/documents.jsonl")
    args = parser.parse_args()
    seen, total = set(), 0
    part = args.out.with_suffix(".part")
    with multiprocessing.Pool() as pool, open(part, "w") as out:
        for source in fetch.load_sources(args.sources):
            if source["recipe"] not in texts.RECIPES:
                continue
            size = count = 0
            for text in documents(source, args.raw, pool, seen):
                line = {"source": source["package"], "copies": source.get("copies", 1),
                        "held": hashed(text) % HELD_OUT_ONE_IN == 0, "text": text}
                out.write(json.dumps(line, ensure_ascii=False) + "\n")
                size, count = size + len(text), count + 1
            total += size
            print(f"documents: {source['package']}: {count} of {size / 1e6:.2f} MB", flush=True)
            if not count:
                print(f"documents: warning: nothing of {source['package']}: is it fetched?", file=sys.stderr)
    if not total:
        sys.exit(f"documents: no text under {args.raw}/x: run fetch.py first")
    part.rename(args.out)
    print(f"documents: {total / 1e6:.1f} MB in {args.out}")


if __name__ == "__main__":
    main()
