#!/usr/bin/env bash
# Builds into build/<preset>, and points build/current there. Usage: ./build.sh [target...]
# DEEPINFER_ACCELERATOR=cpu|nvidia; unset: nvidia if nvcc >= 13.0 is found, else cpu. With `nvidia`
# and no such nvcc, the compiler is fetched from PyPI into build/cuda. DI_PRESET picks another of
# CMakePresets.json; `asan` wants clang (tools/setup.sh fuzz).
# Nothing is installed on the system here: that is tools/setup.sh, which run.sh and test.sh call.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. tools/find_nvcc.sh
. tools/find_clang.sh

case ${DEEPINFER_ACCELERATOR-unset} in
  unset) if find_nvcc; then preset=nvidia; else preset=release; fi ;;
  cpu) preset=release ;;
  nvidia)
    preset=nvidia
    find_nvcc || fetch_nvcc
    ;;
  *)
    echo "build.sh: DEEPINFER_ACCELERATOR is '$DEEPINFER_ACCELERATOR', expected cpu or nvidia" \
      "(ascend is not supported)" >&2
    exit 2
    ;;
esac
preset=${DI_PRESET:-$preset}
folder=build/$preset

# A compiler process takes about 1 GiB at worst.
jobs=$(awk -v cpus="$(nproc)" '/^MemAvailable/ {n = int($2 / 1048576); if (n < 1) n = 1;
  print (n < cpus ? n : cpus)}' /proc/meminfo)

if [ ! -f "$folder/build.ninja" ]; then
  compiler=
  if [ "$preset" = asan ]; then compiler=$(find_clang); fi
  cmake --preset "$preset" ${compiler:+-DCMAKE_CXX_COMPILER="$compiler"} >&2
fi
# Silent when everything is up to date.
if ! ninja -C "$folder" -n "$@" | grep -q '^ninja: no work to do'; then
  cmake --build "$folder" -j "$jobs" ${1:+--target "$@"} >&2
fi
[ -n "${DI_PRESET:-}" ] || ln -sfn "$preset" build/current
