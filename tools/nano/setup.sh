#!/usr/bin/env bash
# Makes build/nano-env, the Python of this folder, once; quick when it is there.
# Usage: tools/nano/setup.sh [data|train]   data: what the corpus needs; train (default): also
#        PyTorch.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
home=build/nano-env
packages="numpy==2.4.6 tokenizers==0.23.3 selectolax==1.0.2 setuptools==84.2.1"
case ${1:-train} in
  data) ;;
  train) packages+=" torch==2.13.0 safetensors==0.8.0" ;;
  *)
    echo "tools/nano/setup.sh: unknown group '$1', expected data or train" >&2
    exit 2
    ;;
esac

# The wanted packages that are not there in the wanted version; torch's may carry a suffix.
missing() {
  local installed
  installed=$("$home/bin/python" -m pip --disable-pip-version-check list --format freeze \
    2>/dev/null | sed 's/+.*//' || true)
  comm -23 <(printf '%s\n' $packages | sort) <(sort <<<"$installed")
}

mkdir -p build
[ -x "$home/bin/python" ] || python3 -m venv "$home"
wanted=$(missing)
[ -n "$wanted" ] || exit 0
echo "nano: installing" $wanted "into $home" >&2
if ! timeout 1800 "$home/bin/python" -m pip install --quiet --disable-pip-version-check $wanted \
  2>build/nano-env.log; then
  said=$(grep ERROR build/nano-env.log | tail -1 | grep . || echo "see build/nano-env.log")
  echo "tools/nano/setup.sh: pip failed: $said" >&2
  exit 1
fi
wanted=$(missing)
if [ -n "$wanted" ]; then
  echo "tools/nano/setup.sh: still missing after pip install:" $wanted >&2
  exit 1
fi
