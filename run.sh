#!/usr/bin/env bash
# Installs what is missing, builds, and runs `deepinfer ARGS`: ./run.sh generate --prompt "Hello"
# Until a model is bundled, the default model is a tiny one made here, with random weights.
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
  case "${1:-} $*" in
    *--model* | *--help*) ;;
    generate\ * | chat\ *)
      echo "run.sh: no model given: using a tiny one with random weights, its text is noise" >&2 ;;
  esac
fi
exec "$root/build/current/src/apps/deepinfer" "$@"
