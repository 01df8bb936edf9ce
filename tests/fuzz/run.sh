#!/usr/bin/env bash
# Builds the fuzzers (preset asan: clang, ASan, UBSan) and runs each for a while, as many at a time
# as there are processors. One line a fuzzer; closes with the line `N passed, N failed`.
# Usage: tests/fuzz/run.sh [SECONDS [FUZZER...]]   default: 30 seconds each, all of them
# Inputs that reach new code gather in build/fuzz/corpus and stay for the next run. Those that fail
# lie in build/fuzz/findings; build/asan/tests/fuzz/fuzz_NAME FILE runs one again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export folder=build/fuzz seconds=${1:-30}
if [[ ! $seconds =~ ^[1-9][0-9]*$ ]]; then
  echo "run.sh: '$seconds' is no number of seconds" >&2
  exit 2
fi
shift || true

# Runs one fuzzer and prints its line; the end of its log follows if it failed.
run_one() {
  local name=$1 log=$folder/$1.log status=0
  mkdir -p "$folder/corpus/$name" "$folder/findings"
  "build/asan/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=2560 \
    -print_final_stats=1 -artifact_prefix="$folder/findings/$name-" \
    "$folder/corpus/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1 </dev/null || status=$?
  number() { sed -n "s/^stat::$1: *//p" "$log"; }
  printf '%-18s %s, %s executions, %s/s, %s MiB\n' "$name" \
    "$([ "$status" -eq 0 ] && echo passed || echo FAILED)" "$(number number_of_executed_units)" \
    "$(number average_exec_per_sec)" "$(number peak_rss_mb)"
  [ "$status" -eq 0 ] || grep -av '^#[0-9]' "$log" | tail -n 60
}
export -f run_one

tools/setup.sh fuzz
DI_PRESET=asan ./build.sh fuzzers

[ $# -gt 0 ] || set -- $(ls tests/fuzz/corpus)
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} bash -c 'run_one {}' | tee "$lines"
passed=$(grep -c '^[a-z_]* *passed, ' "$lines" || true)
echo "$passed passed, $(($# - passed)) failed"
[ "$passed" -eq $# ]
