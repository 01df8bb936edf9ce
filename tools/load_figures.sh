#!/usr/bin/env bash
# Measures loading on two checkpoints of made-up weights, 306 MB and 1.1 GB: files in the system's
# cache beside plain reads into fresh memory, and cold files beside direct reads. README's figures.
# Usage: tools/load_figures.sh     BUILD=...  a folder that holds deepinfer and make_tiny already
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=${BUILD:-build/current}
if [ -z "${BUILD:-}" ]; then DEEPINFER_ACCELERATOR=cpu ./build.sh deepinfer make_tiny; fi
work=$(mktemp -d -p build)
trap 'rm -rf "$work"' EXIT
cp tools/oracle/mid_config.json "$work/mid.json"
sed -e 's/"hidden_size": 1024/"hidden_size": 2048/' \
  -e 's/"moe_intermediate_size": 512/"moe_intermediate_size": 1024/' \
  "$work/mid.json" >"$work/large.json"
for name in mid large; do
  "$bin/tools/tiny/make_tiny" "$work/$name.json" "$work/$name" 7 >/dev/null
  for cold in "" --cold; do
    "$bin/src/apps/deepinfer" bench load --model "$work/$name" $cold --log-level error
  done
done
