#!/usr/bin/env bash
# The long run on a machine that is reached by short calls:
#   train.sh start CARRY [flags of train.py]
#       unpacks, starts training in a session of its own, returns
#   train.sh poll SECONDS OUT [weights|export|none]
#       waits until the run ends, SECONDS at most; shows the log; copies to OUT (8 files, 64 MiB at
#       most) the last weights, or at the end the exported model
set -uo pipefail
verb=${1:-} ; shift
source "$(dirname "${BASH_SOURCE[0]}")/machine.sh"

start() {
  carry=$1
  shift
  unpack "$carry"
  mapfile -t f < <(flags)
  # The first phase compiles in the run, the later ones beside it.
  if [ ! -d "$TORCHINDUCTOR_CACHE_DIR" ]; then
    TORCHINDUCTOR_COMPILE_THREADS=4 setsid nice \
      "$PYTHON" "$here/precompile.py" --skip 1 "${f[@]}" "$@" \
      > "$RUN/precompile.log" 2>&1 < /dev/null &
  fi
  setsid "$PYTHON" "$here/train.py" "${f[@]}" "$@" > "$RUN/train.log" 2>&1 < /dev/null &
  echo $! > "$RUN/pid"
  echo "train: process $(cat "$RUN/pid"), log $RUN/train.log"
}

alive() { kill -0 "$(cat "$RUN/pid")" 2> /dev/null; }

poll() {
  end=$((SECONDS + $1)) out=$2 what=${3:-auto}
  from=$(cat "$RUN/shown" 2> /dev/null || echo 1)
  while alive && [ $SECONDS -lt $end ]; do sleep 2; done
  tail -n "+$from" "$RUN/train.log" | cut -c1-400 | tail -n 120
  wc -l < "$RUN/train.log" | awk '{print $1 + 1}' > "$RUN/shown"
  alive && state=running || state=ended
  if [ "$what" = auto ]; then
    [ $state = ended ] && [ -d "$RUN/out/export" ] && what=export || what=weights
  fi
  case $what in
    weights) cp "$RUN/out/weights/$(cat "$RUN/out/weights/current")"/* "$out/" ;;
    export) cp "$RUN/out/export"/*.safetensors* "$RUN/out/export/config.json" "$out/"
            cp "$RUN/out/weights/$(cat "$RUN/out/weights/current")/meta.json" "$out/" ;;
  esac
  gzip -c "$RUN/out/log.jsonl" > "$out/log.jsonl.gz"
  echo "train: $state"
}

case $verb in
  start) start "$@" ;;
  poll) poll "$@" ;;
  *)
    echo "usage: train.sh start CARRY [flags] | poll SECONDS OUT [weights|export|none]" >&2
    exit 2 ;;
esac
