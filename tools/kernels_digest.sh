#!/usr/bin/env bash
# Which CPU kernels were these? Prints a SHA-256 over the sources of src/kernels; tests and the
# accelerators' device code are left out.
#   tools/kernels_digest.sh           prints it
#   tools/kernels_digest.sh --check   compares it with every results file of docs/measured
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

digest() {
  find src/kernels -type f \( -name '*.cc' -o -name '*.h' \) ! -name '*_test.cc' \
    ! -path '*/testing/*' ! -path '*/device/*' -print0 |
    LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1
}

check() {
  local now file stale=0
  now=$(digest)
  for file in docs/measured/cpu-*.json; do
    if [ ! -f "$file" ]; then
      echo "skipped: no results in docs/measured; tools/gpu_check.sh --cpu makes them"
      return
    elif ! grep -q "\"kernels_digest\": \"$now\"" "$file"; then
      echo "skipped: $file: results are older than the kernels; renew: tools/gpu_check.sh --cpu"
      stale=1
    elif ! grep -q '"failed": 0,' "$file" || grep -q '"failed": [1-9]' "$file"; then
      echo "$file: has failed tests, expected none"
      return 1
    fi
  done
  [ "$stale" -eq 1 ] || echo "passed: results are those of the kernels"
}

case ${1:-} in
  '') digest ;;
  --check) check ;;
  *) echo "Usage: tools/kernels_digest.sh [--check]" >&2 && exit 2 ;;
esac
