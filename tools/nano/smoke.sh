#!/usr/bin/env bash
# A first look on the training machine, 4 minutes:  smoke.sh CARRY OUT [flags of train.py]
# Compiles all variants at once, then measures each. OUT gets the log, and the compile cache for the
# long run if it is small enough to travel.
set -uo pipefail
carry=$1 out=$2
shift 2
source "$(dirname "${BASH_SOURCE[0]}")/machine.sh"
unpack "$carry"
mapfile -t f < <(flags)
begun=$SECONDS
{
  TORCHINDUCTOR_COMPILE_THREADS=4 "$PYTHON" "$here/precompile.py" "${f[@]}" "$@"
  echo "all variants compiled after $((SECONDS - begun)) s"
  "$PYTHON" "$here/smoke.py" "${f[@]}" --deadline-at "${SMOKE_SECONDS:-100}" "$@"
} 2>&1 | tee "$out/smoke.log"
pack_cache "$out/cache.tar.xz"
echo "smoke: $((SECONDS - begun)) s in all"
