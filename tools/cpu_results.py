#!/usr/bin/env python3
"""Puts what tools/cpu_check.sh left in a folder into one results file and a table beside it.

Usage: cpu_results.py WORK_FOLDER DIGEST_FILE OUT_FOLDER
WORK_FOLDER: <program>_test.json of GoogleTest with its .log; {step,kernels}-<variant>.json of
`deepinfer bench --json`, or empty with the reason in .err.
Writes OUT_FOLDER/cpu-<variants that ran>.{json,md}. Fails if a test failed or a program crashed.
"""
import datetime
import json
import os
import pathlib
import re
import sys

VARIANTS = ("avx2", "avx512", "amx")
CACHES = pathlib.Path("/sys/devices/system/cpu/cpu0/cache")


def read(path):
    return path.read_text() if path.exists() else ""


def cpu_info(field):
    found = re.search(rf"^{field}\s*: (.*)$", read(pathlib.Path("/proc/cpuinfo")), re.M)
    return found.group(1) if found else "unknown"


def count_tests(work):
    """Counts by variant ("plain": tests of no one variant), failures, and reasons of skips."""
    counts = {name: {"passed": 0, "failed": 0, "skipped": 0} for name in ("plain", *VARIANTS)}
    failures, reasons = [], set()
    for log in sorted(work.glob("*_test.log")):
        reasons.update(re.findall(r"^skipped: .*$", log.read_text(), re.M))
        report = read(log.with_suffix(".json"))
        if not report:
            counts["plain"]["failed"] += 1
            failures.append(f"{log.stem} ended early: {log.read_text()[-300:]}")
            continue
        for suite in json.loads(report)["testsuites"]:
            for test in suite["testsuite"]:
                variant = test["name"].rpartition("/")[2]
                row = counts.get(variant, counts["plain"])
                if test.get("failures"):
                    row["failed"] += 1
                    failures.append(f"{suite['name']}.{test['name']}")
                else:
                    row["skipped" if test["result"] == "SKIPPED" else "passed"] += 1
    total = {key: sum(row[key] for row in counts.values()) for key in counts["plain"]}
    return {**total, "by_variant": counts, "failures": failures, "skip_reasons": sorted(reasons)}


def bench(work, variant):
    """Both benchmarks of a variant, or why there are none."""
    found = {}
    for what in ("step", "kernels"):
        text = read(work / f"{what}-{variant}.json")
        if not text:
            return {"not_run": read(work / f"{what}-{variant}.err").strip()}
        found[what] = json.loads(text)
    return found


def table(results):
    host, tests = results["host"], results["tests"]
    lines = [
        f"# {host['processor']}, {host['cores']} cores",
        "",
        f"Written by `tools/gpu_check.sh --cpu` on {host['date']}; `tools/kernels_digest.sh` said",
        f"`{results['kernels_digest']}`.",
        "",
        "| variant | tests passed | failed | skipped | reads GB/s | dots GMAC/s | decode reads "
        "| prefill dots | decode | prefill of 512 |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for variant, counts in tests["by_variant"].items():
        cells = [variant, *(str(counts[key]) for key in ("passed", "failed", "skipped"))]
        step = results["variants"].get(variant, {}).get("step")
        if step:
            cells += [
                f"{step['read_bytes_per_s'] / 1e9:.1f}",
                f"{step['macs_per_s'] / 1e9:.0f}",
                f"{100 * step['decode_read_fraction']:.1f} %",
                f"{100 * step['prefill_dot_fraction']:.1f} %",
                f"{step['decode']['us'] / 1e3:.2f} ms",
                f"{step['prefill']['us'] / 1e3:.1f} ms",
            ]
        else:
            cells += ["-"] * 6
        lines.append("| " + " | ".join(cells) + " |")
    for variant, result in results["variants"].items():
        if "not_run" in result:
            lines += ["", f"{variant} was not measured: {result['not_run']}"]
    if tests["skip_reasons"]:
        lines += ["", "Tests said: " + "; ".join(tests["skip_reasons"])]
    return "\n".join(lines) + "\n"


def main():
    work, digest_file, out = (pathlib.Path(name) for name in sys.argv[1:])
    results = {
        "kernels_digest": digest_file.read_text().strip(),
        "host": {
            "processor": cpu_info("model name"),
            "cores": len(os.sched_getaffinity(0)),
            "last_level_cache": read(CACHES / "index3/size").strip() or "unknown",
            "date": datetime.date.today().isoformat(),
        },
        "tests": count_tests(work),
        "variants": {variant: bench(work, variant) for variant in VARIANTS},
    }
    ran = [name for name, result in results["variants"].items() if "not_run" not in result]
    out.mkdir(parents=True, exist_ok=True)
    path = out / ("cpu-" + "-".join(ran or ["none"]))
    path.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
    path.with_suffix(".md").write_text(table(results))
    tests = results["tests"]
    print(table(results), *tests["failures"], sep="\n")
    print(f"{tests['passed']} passed, {tests['failed']} failed, {tests['skipped']} skipped")
    return 1 if tests["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
