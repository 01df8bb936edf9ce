#!/usr/bin/env bash
# Runs a Python test of this folder with build/nano-env (tools/nano/setup.sh makes it).
# Usage: tools/nano/python_test.sh NAME_test.py MODULES...
# Exit status 77: skipped, because modules are missing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=$here/../../build/nano-env/bin/python
test=$1
shift
if ! "$python" -c "import $(IFS=,; echo "$*")" 2>/dev/null; then
  echo "SKIPPED: build/nano-env lacks one of: $*; tools/nano/setup.sh installs them"
  exit 77
fi
exec "$python" "$here/$test"
