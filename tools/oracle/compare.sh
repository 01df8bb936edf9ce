#!/usr/bin/env bash
# Runs small checkpoints through this engine and through three implementations that are not ours,
# and writes docs/fidelity.md. Exit status 1: a bar of README.md does not hold.
#
# Usage: tools/oracle/compare.sh [GOLDEN_FOLDER...]      default: tests/golden/{tiny,A,B}
#   SEEDS="7 8"   two checkpoints of these seeds come on top; drawn and printed when not given
#   PYTHON=...    makes the environments; Python 3.11 was used
#   BUILD=...     a folder that holds deepinfer, make_tiny and golden_faults already
# Needs package downloads once and about 3 GB under build/. Takes minutes; not part of .ci/run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
run=build/oracle-run
source tools/oracle/environments.sh

# Seconds that an outside call may take. ftllm was seen to hang, so it is tried three times.
oracle_s=900 ftllm_s=600 ftllm_tries=3

# The matrices are so small that threads would wait for each other longer than they work.
export OMP_NUM_THREADS=1

# Mistakes compiled into a test build of the engine: each one must turn the layer comparison red.
controls="no_activation_quant no_inverse_rope window_minus_one global_kv_unquantised
  routing_weight_after_w2 v4_own_pre"

# oracle NAME FOLDER SECONDS: figures of one implementation about a recorded run, or why there are
# none.
oracle() {
  local name=$1 folder=$2 status=0
  local out=$folder/$name.json
  timeout --kill-after=10 "$3" "$envs/$name/bin/python" "tools/oracle/${name//-/_}_oracle.py" \
    "$folder" --json "$out" >"$folder/$name.log" 2>&1 || status=$?
  [ -f "$out" ] || { echo "{\"error\": \"no result, status $status\"}" >"$out.failed" && return 1; }
}

# checkpoint CONFIG SEED FOLDER: weights of a seed in FOLDER/checkpoint.
checkpoint() {
  "$bin/tools/tiny/make_tiny" "$1" "$3/checkpoint" "$2"
}

# record NAME OPTIONS...: this engine's run in the golden layout.
record() {
  "$bin/src/apps/deepinfer" selftest --record "$run/$1" "${@:2}"
}

# A golden folder: the engine against what it stores, and a run of the engine for the others.
prepare_golden() {
  local folder=${1%/} name seed
  name=$(basename "$folder")
  mkdir -p "$run/$name"
  cp "$folder"/limits.json "$run/$name" 2>/dev/null || true
  seed=$(sed -n 's/.*"seed": *\([0-9]*\).*/\1/p' "$folder/checkpoint/generator.json")
  checkpoint "$folder/checkpoint/config.json" "$seed" "$run/$name"
  "$bin/src/apps/deepinfer" selftest --golden "$folder" --json >"$run/$name/official.json" || true
  record "$name" --prompt-of "$folder"
}

# fresh CONFIG_NAME LIMITS_FOLDER PROMPT_TOKENS SEED
prepare_fresh() {
  local name="fresh-$1-$4"
  mkdir -p "$run/$name"
  cp "tests/golden/$2/limits.json" "$run/$name"
  checkpoint "tools/tiny/$1.json" "$4" "$run/$name"
  record "$name" --prompt-tokens "$3" --seed "$4"
}

prepare_control() {
  local folder=$run/controls/$1
  mkdir -p "$folder"
  ln -s ../checkpoint "$folder/checkpoint"
  cp tests/golden/tiny/limits.json "$folder"
  "$bin/tests/golden/golden_faults" "$1" "$folder" record
}

bin=${BUILD:-build/current}
if [ -z "${BUILD:-}" ]; then
  DEEPINFER_ACCELERATOR=cpu ./build.sh deepinfer make_tiny golden_faults
fi
environment automodel "torch==2.13.0 transformers==5.23.0 numpy safetensors pillow pyyaml" \
  nemo-automodel==0.7.0
environment mlx-vlm "mlx[cpu]==0.32.4 transformers==5.23.0 numpy pillow" mlx-vlm==0.7.10
ftllm_environment

rm -rf "$run"
[ $# -gt 0 ] || set -- tests/golden/tiny tests/golden/A tests/golden/B
for folder in "$@"; do prepare_golden "$folder"; done
read -r first_seed second_seed <<<"${SEEDS:-$(od -An -N8 -tu4 /dev/urandom)}"
echo "seeds: $first_seed $second_seed"
prepare_fresh tiny tiny 72 "$first_seed"
prepare_fresh stress_a A 80 "$second_seed"
for folder in "$run"/*/; do
  for name in automodel mlx-vlm; do
    echo "==== $name on $folder"
    oracle "$name" "${folder%/}" "$oracle_s" || echo "no result: ${folder}$name.log"
  done
  echo "==== ftllm on $folder"
  for ((try = 1; try <= ftllm_tries; ++try)); do
    oracle ftllm "${folder%/}" "$ftllm_s" && break
    echo "no result, try $try of $ftllm_tries"
  done
done

checkpoint tests/golden/tiny/checkpoint/config.json 101 "$run/controls"
for control in none $controls; do
  echo "==== control $control"
  prepare_control "$control"
  oracle automodel "$run/controls/$control" "$oracle_s" || echo "no result"
done
mkdir -p docs
python3 tools/oracle/fidelity.py "$run" "$envs" >docs/fidelity.md.new && status=0 || status=$?
mv docs/fidelity.md.new docs/fidelity.md
tail -n 20 docs/fidelity.md
exit "$status"
