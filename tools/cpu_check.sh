#!/usr/bin/env bash
# The CPU half of tools/gpu_check.sh, for hosts with instruction sets that the build machine lacks.
#   tools/cpu_check.sh bundle   builds, and gathers programs and their libraries in build/cpu_bundle
#   tools/cpu_check.sh run      tests and measures with them, at the root of any copy of this tree;
#                               writes docs/measured/cpu-<instruction sets>.{json,md} (python3);
#                               closes with `N passed, N failed, N skipped`
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bundle=build/cpu_bundle
build=build/portable
tests=(kernels_test kernels_attention_test model_test golden_test)

make_bundle() {
  local before
  before=$(tools/kernels_digest.sh) || return
  # DI_TEST_ROOT=.: tests find their files from the folder in which they are started.
  cmake --preset release -B "$build" -DDI_TEST_ROOT=. -DDEEPINFER_ACCELERATOR=cpu >&2 || return
  cmake --build "$build" -j "$(nproc)" --target deepinfer "${tests[@]}" >&2 || return
  if [ "$(tools/kernels_digest.sh)" != "$before" ]; then
    echo "cpu_check.sh: src/kernels changed while it was built; run bundle again" >&2
    return 1
  fi
  rm -rf "$bundle" && mkdir -p "$bundle/lib" || return
  local program
  for program in deepinfer "${tests[@]}"; do
    strip -o "$bundle/$program" "$(find "$build" -type f -name "$program" -perm -u+x)" || return
  done
  # Their libraries, the C library and its loader among them: the other machine's may be older.
  ldd "$bundle"/{deepinfer,*_test} | grep -o '/[^ ]*' | sort -u | grep '\.so' |
    xargs cp -L -t "$bundle/lib" || return
  echo "$before" >"$bundle/kernels_digest"
  du -sh "$bundle"
}

from_bundle() {
  local program=$1
  shift
  "$bundle/lib/ld-linux-x86-64.so.2" --library-path "$bundle/lib" "$bundle/$program" "$@"
}

# Four times the last-level cache and at least 2 GiB, so that no weights stay in a cache.
weight_bytes() {
  local cache
  cache=$(getconf LEVEL3_CACHE_SIZE 2>/dev/null)
  cache=$((${cache:-0} * 4))
  echo $((cache > 2147483648 ? cache : 2147483648))
}

run_bundle() {
  local work variant what program
  work=$(mktemp -d)
  for program in "${tests[@]}"; do
    from_bundle "$program" "--gtest_output=json:$work/$program.json" >"$work/$program.log" 2>&1 &
  done
  wait
  for variant in avx2 avx512 amx; do
    for what in step kernels; do
      from_bundle deepinfer bench "$what" --variant "$variant" --weight-bytes "$(weight_bytes)" \
        --log-level warning --json >"$work/$what-$variant.json" 2>"$work/$what-$variant.err"
    done
  done
  python3 tools/cpu_results.py "$work" "$bundle/kernels_digest" docs/measured
  local status=$?
  rm -rf "$work"
  return "$status"
}

case ${1:-} in
  bundle) make_bundle ;;
  run) run_bundle ;;
  *) echo "Usage: tools/cpu_check.sh bundle|run" >&2 && exit 2 ;;
esac
