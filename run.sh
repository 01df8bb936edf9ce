#!/usr/bin/env bash
# Installs what is missing, builds, and runs `deepinfer ARGS`: ./run.sh generate --prompt "Hello"
# Without --model it is the bundled model, models/nano.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$root/tools/setup.sh" build
"$root/build.sh" deepinfer
exec "$root/build/current/src/apps/deepinfer" "$@"
