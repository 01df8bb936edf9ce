#!/usr/bin/env bash
# Does a CUDA build find, load on and compute on a machine with NVIDIA GPUs? In two steps, so that
# it can be built on one machine and run on another that has GPUs and no compiler:
#   tools/gpu_check.sh bundle   builds, and gathers programs and their libraries in build/gpu_bundle
#   tools/gpu_check.sh run      runs them from there; closes with `N passed, N failed`
# Hosts of GPUs also have processors that build machines lack. The same for the CPU build, with
# kernel and golden tests of every variant and benchmarks (tools/cpu_check.sh):
#   tools/gpu_check.sh bundle-cpu
#   tools/gpu_check.sh --cpu
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bundle=build/gpu_bundle

make_bundle() {
  DEEPINFER_ACCELERATOR=nvidia ./build.sh deepinfer device_test make_tiny || return
  rm -rf "$bundle" && mkdir -p "$bundle/lib" || return
  cp build/nvidia/src/{apps/deepinfer,kernels/device_test} build/nvidia/tools/tiny/make_tiny \
    "$bundle" || return
  strip "$bundle"/{deepinfer,device_test,make_tiny}
  # Their libraries, the C library and its loader among them: the other machine's may be older.
  ldd "$bundle"/{deepinfer,device_test,make_tiny} | grep -o '/[^ ]*' | sort -u | grep '\.so' |
    xargs cp -L -t "$bundle/lib"
  du -sh "$bundle"
}

passed=0 failed=0
# check NAME PATTERN COMMAND...: the command succeeds and its output has a line that matches.
check() {
  local name=$1 pattern=$2 output
  shift 2
  if output=$("$bundle/lib/ld-linux-x86-64.so.2" --library-path "$bundle/lib" "$@" 2>&1) &&
    grep -q -- "$pattern" <<<"$output"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $name"
  fi
  sed 's/^/  /' <<<"$output" | tail -n 5
}

run_bundle() {
  nvidia-smi -L
  local tiny
  tiny=$(mktemp -d)/tiny
  check "the build says which GPUs it can use" '^CUDA build, usable: ' "$bundle/deepinfer" --version
  check "list and note agree" 'PASSED' "$bundle/device_test"
  check "a checkpoint is made" '' "$bundle/make_tiny" tiny "$tiny"
  check "it answers" '' "$bundle/deepinfer" generate --model "$tiny" --prompt Hello --max-tokens 8
  rm -rf "$(dirname "$tiny")"
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}

case ${1:-} in
  bundle) make_bundle ;;
  run) run_bundle ;;
  bundle-cpu) tools/cpu_check.sh bundle ;;
  --cpu) tools/cpu_check.sh run ;;
  *) echo "Usage: tools/gpu_check.sh bundle|run|bundle-cpu|--cpu" >&2 && exit 2 ;;
esac
