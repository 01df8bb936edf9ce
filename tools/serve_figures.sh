#!/usr/bin/env bash
# Builds, measures the HTTP server and prints its figures as a table. Wants a quiet machine with two
# cores, about six minutes. Usage: tools/serve_figures.sh [streams|share|pattern|vanish]...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
./build.sh deepinfer
exec python3 tests/serve_load/figures.py build/current/src/apps/deepinfer models/nano "$@"
