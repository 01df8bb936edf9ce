#!/usr/bin/env bash
# This engine and ftllm side by side on one checkpoint of 306 MB with one thread each, alternating,
# best of the rounds; ours with two threads beside it. Exit status 1: decode or prefill is not 5
# times as fast. Usage: tools/oracle/race.sh [RESULT.json]
#   ROUNDS=3      how often each runs
#   VARIANT=avx2  the form of our ops; auto when not given
#   BUILD=...     a folder that holds deepinfer and make_tiny already
# Needs compare.sh's environment of ftllm, and makes it if it is not there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tools/oracle/environments.sh
folder=build/oracle-race prompt=128 decode=32 bar=5
result=${1:-$folder/race.json}

bin=${BUILD:-build/current}
[ -n "${BUILD:-}" ] || DEEPINFER_ACCELERATOR=cpu ./build.sh deepinfer make_tiny
ftllm_environment
[ -f "$folder/checkpoint/config.json" ] ||
  "$bin/tools/tiny/make_tiny" tools/oracle/mid_config.json "$folder/checkpoint" 7

ours() {
  timeout 120 "$bin/src/apps/deepinfer" bench request --model "$folder/checkpoint" --json \
    --log-level error --variant "${VARIANT:-auto}" --threads "$1" \
    --prompt-tokens "$prompt" --decode-tokens "$decode"
}
# ftllm was seen to hang: a time limit, and up to three attempts.
theirs() {
  for _ in 1 2 3; do
    timeout --kill-after=5 120 "$envs/ftllm/bin/python" tools/oracle/ftllm_oracle.py \
      "$folder" --bench "$prompt,$decode" --dtype bfloat16 --threads 1 \
      --json "$folder/ftllm.json" >"$folder/ftllm.log" 2>&1 && cat "$folder/ftllm.json" && return
  done
  echo "ftllm gave no result, see $folder/ftllm.log" >&2
  return 1
}

rm -f "$folder"/round-*.json
for ((round = 1; round <= ${ROUNDS:-3}; ++round)); do
  theirs >"$folder/round-$round-ftllm.json"
  ours 1 >"$folder/round-$round-ours_1.json"
  ours 2 >"$folder/round-$round-ours_2.json"
done
python3 - "$folder" "$result" "$bar" <<'EOF'
import glob, json, sys

folder, result, bar = sys.argv[1], sys.argv[2], float(sys.argv[3])
best = {}
for name in ("ftllm", "ours_1", "ours_2"):
    runs = [json.load(open(path)) for path in glob.glob(f"{folder}/round-*-{name}.json")]
    best[name] = {key: max(run[key] for run in runs)
                  for key in ("prefill_tokens_per_s", "decode_tokens_per_s")}
    best[name]["rounds"] = len(runs)
    best[name].update({key: runs[0][key] for key in ("isa", "dtype") if key in runs[0]})
ratios = {key: best["ours_1"][key] / best["ftllm"][key]
          for key in ("prefill_tokens_per_s", "decode_tokens_per_s")}
json.dump({"best": best, "ratios_1_thread": ratios, "bar": bar}, open(result, "w"), indent=1)
print(f"{'':22}prefill tokens/s   decode tokens/s")
for name, label in (("ftllm", "ftllm bf16, 1 thread"), ("ours_1", "ours, 1 thread"),
                    ("ours_2", "ours, 2 threads")):
    print(f"{label:22}{best[name]['prefill_tokens_per_s']:16.1f}"
          f"{best[name]['decode_tokens_per_s']:18.1f}")
print(f"{'ratio, 1 thread':22}{ratios['prefill_tokens_per_s']:16.2f}"
      f"{ratios['decode_tokens_per_s']:18.2f}")
sys.exit(0 if min(ratios.values()) >= bar else 1)
EOF
