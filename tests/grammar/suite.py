"""The official JSON-Schema-Test-Suite against grammar_probe: every schema and instance of drafts
2020-12 and 7 outside of optional/. Usage: suite.py PROBE TOKENIZER ARCHIVE [--list KIND]

A schema is `exact` (every valid instance accepted, no invalid one), `narrower` (a valid one
rejected), `refused`, or `wrong` (an invalid one accepted), which fails the run. Instances are
written the way json.dumps does.
"""
import argparse
import json
import pathlib
import sys
import tarfile

from prober import Prober

DRAFTS = {"draft2020-12": "https://json-schema.org/draft/2020-12/schema",
          "draft7": "http://json-schema.org/draft-07/schema#"}
# What docs/structured_output.md promises; the counts only rise.
LEAST_ENFORCED = 311


def cases(archive):
    """(draft, file, description, schema text, [(instance text, valid)])"""
    with tarfile.open(archive) as tar:
        for member in sorted(tar.getmembers(), key=lambda m: m.name):
            parts = pathlib.PurePosixPath(member.name).parts
            if not member.isfile() or len(parts) < 3 or parts[-2] not in DRAFTS or not parts[-1].endswith(".json"):
                continue
            if parts[-3] != "tests":
                continue
            for group in json.load(tar.extractfile(member)):
                schema = group["schema"]
                if isinstance(schema, dict) and "$schema" not in schema:
                    schema = {"$schema": DRAFTS[parts[-2]], **schema}
                tests = [(json.dumps(t["data"], ensure_ascii=False), t["valid"]) for t in group["tests"]]
                yield parts[-2], parts[-1], group["description"], json.dumps(schema), tests


def verdict(answer, tests):
    if "code" in answer:
        return "refused", answer["message"]
    wrong = [text for (text, valid), taken in zip(tests, answer["taken"]) if taken and not valid]
    if wrong:
        return "wrong", wrong[0]
    narrower = [text for (text, valid), taken in zip(tests, answer["taken"]) if valid and not taken]
    return ("narrower", narrower[0]) if narrower else ("exact", "")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("probe")
    parser.add_argument("tokenizer")
    parser.add_argument("archive")
    parser.add_argument("--list", help="print the schemas of this kind")
    args = parser.parse_args()
    counts = {}
    with Prober(args.probe, args.tokenizer) as prober:
        for draft, file, description, schema, tests in cases(args.archive):
            answer = prober.ask({"kind": "json_schema", "text": schema, "texts": [text for text, _ in tests]})
            kind, what = verdict(answer, tests)
            counts.setdefault(draft, {}).setdefault(kind, 0)
            counts[draft][kind] += 1
            if args.list == kind or kind == "wrong":
                print(f"{kind}: {draft}/{file}: {description}: {what}\n    {schema}")
    total = {}
    for draft, kinds in counts.items():
        print(f"{draft}: " + ", ".join(f"{kinds.get(k, 0)} {k}" for k in ("exact", "narrower", "refused", "wrong")))
        for kind, count in kinds.items():
            total[kind] = total.get(kind, 0) + count
    enforced = total.get("exact", 0) + total.get("narrower", 0)
    print(f"JSON-Schema-Test-Suite: {sum(total.values())} schemas: {total.get('exact', 0)} exact, "
          f"{total.get('narrower', 0)} narrower, {total.get('refused', 0)} refused, {total.get('wrong', 0)} wrong")
    if total.get("wrong") or enforced < LEAST_ENFORCED:
        sys.exit(f"FAILED: expected 0 wrong and at least {LEAST_ENFORCED} exact or narrower, found {enforced}")


if __name__ == "__main__":
    main()
