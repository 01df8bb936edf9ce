#!/usr/bin/env bash
# Runs ctest in a build folder and closes with the line `N passed, N failed` (`, N skipped` if any).
# Usage: tools/run_ctest.sh BUILD_FOLDER [ctest arguments]. Fails if a test fails or none runs.
set -uo pipefail
folder=$1
shift
report=$(mktemp)
trap 'rm -f "$report"' EXIT

ctest --test-dir "$folder" --output-on-failure --no-tests=error -j "$(nproc)" \
  --output-junit "$report" "$@" </dev/null
status=$?

count() { grep -o -m 1 "[[:space:]]$1=\"[0-9]*\"" "$report" | tr -dc 0-9; }
tests=$(count tests) failed=$(count failures) skipped=$(count skipped) disabled=$(count disabled)
skipped=$((${skipped:-0} + ${disabled:-0}))
failed=${failed:-0}
if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi  # ctest itself failed
echo "$((${tests:-0} - ${failed:-0} - skipped)) passed, $failed failed$(
  [ "$skipped" -eq 0 ] || echo ", $skipped skipped")"
exit "$status"
