#!/usr/bin/env bash
# Installs what is missing, builds everything, and runs the tests that need no GPU.
# Arguments go to ctest: ./test.sh -R Tokenizer
# Left out: those that take minutes, `ctest --test-dir build/current -L slow`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
tools/setup.sh test
./build.sh
exec tools/run_ctest.sh build/current -LE '^(gpu|slow)' "$@"
