#!/usr/bin/env bash
# README's table of full-shape layers: runs `bench step` for every variant that this machine has and
# prints the rows. The median of the rounds by decode time, so that a busy moment does not count.
# Usage: tools/step_table.sh [DEEPINFER]     ROUNDS=5: how often each variant runs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
deepinfer=${1:-build/current/src/apps/deepinfer}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for ((round = 0; round < ${ROUNDS:-5}; ++round)); do
  for variant in avx2 avx512 amx; do
    "$deepinfer" bench step --device cpu --variant "$variant" --json --log-level error \
      >"$work/$variant-$round.json" 2>"$work/error" && continue
    rm "$work/$variant-$round.json"
    grep -q 'processor' "$work/error" || { cat "$work/error" >&2 && exit 1; }
  done
done
python3 - "$work" <<'EOF'
import glob, json, sys

print("| form | threads | reads, GB/s | dot products, GMAC/s | decode, ms | of the reads "
      "| prefill of 512, ms | of the dot products | memory beyond the weights |")
print("|---|---|---|---|---|---|---|---|---|")
for variant in ("avx2", "avx512", "amx"):
    runs = [json.load(open(path)) for path in glob.glob(f"{sys.argv[1]}/{variant}-*.json")]
    runs.sort(key=lambda run: run["decode"]["us"])
    if not runs:
        continue
    run = runs[len(runs) // 2]
    spread = sorted(run["decode_read_fraction"] for run in runs)
    extra = run["peak_resident_bytes"] - run["weight_bytes"]
    print(f"| {run['isa']} | {run['threads']} | {run['read_bytes_per_s'] / 1e9:.0f} "
          f"| {run['macs_per_s'] / 1e9:.0f} | {run['decode']['us'] / 1e3:.1f} "
          f"| {100 * run['decode_read_fraction']:.0f} % ({100 * spread[0]:.0f}-"
          f"{100 * spread[-1]:.0f}) | {run['prefill']['us'] / 1e3:.0f} "
          f"| {100 * run['prefill_dot_fraction']:.0f} % | {extra / 2**20:.0f} MiB |")
EOF
