#!/usr/bin/env bash
# Installs what is missing, builds, and runs `deepinfer ARGS`: ./run.sh generate --prompt "Hello"
# Until a model is bundled, the default model is a tiny one made here; its weights are random, and
# deepinfer says so.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$root/tools/setup.sh" build
"$root/build.sh" deepinfer make_tiny

if [ -z "${DEEPINFER_HF_MODEL_DIR:-}" ] && [ ! -d "$root/models/nano" ]; then
  tiny=$root/build/models/tiny
  if [ ! -f "$tiny/config.json" ]; then
    rm -rf "$tiny.part" && mkdir -p "$root/build/models"
    "$root/build/current/tools/tiny/make_tiny" tiny "$tiny.part" >&2
    mv "$tiny.part" "$tiny"
  fi
  export DEEPINFER_HF_MODEL_DIR=$tiny
fi
exec "$root/build/current/src/apps/deepinfer" "$@"
