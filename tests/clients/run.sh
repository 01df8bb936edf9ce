#!/usr/bin/env bash
# Official clients against a real server with the bundled model, and README's examples as written.
# Usage: tests/clients/run.sh [BINARY]   default: build/current/src/apps/deepinfer
# Packages go to build/clients and stay there. Prints a line a case and, last,
# `N passed, N failed, N skipped`; a client that cannot be installed is skipped by its name.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
binary=$(realpath "${1:-$root/build/current/src/apps/deepinfer}")
folder=$root/build/clients
python=$folder/venv/bin/python
work=$(mktemp -d)
results=$work/results servers=()
stop() {
  [ "${#servers[@]}" -eq 0 ] || kill "${servers[@]}" 2>/dev/null
  wait
  rm -rf "$work"
}
trap stop EXIT

"$root/tools/setup.sh" clients || exit 1
mkdir -p "$folder/node"

# pypi NAME VERSION and npm NAME VERSION: whether that client is there now.
pypi() {
  [ -x "$python" ] || python3 -m venv "$folder/venv" || return 1
  "$python" -c "import sys, importlib.metadata as m; sys.exit(m.version('$1') != '$2')" \
    2>/dev/null && return
  "$python" -m pip install --quiet --disable-pip-version-check "$1==$2" >>"$folder/pip.log" 2>&1
}
npm_package() {
  grep -qs "\"version\": \"$2\"" "$folder/node/node_modules/$1/package.json" && return
  npm install --prefix "$folder/node" --no-audit --no-fund --save-exact "$1@$2" \
    >>"$folder/npm.log" 2>&1
}

# start NAME FLAGS...: a server on a free port; its address comes into $address.
start() {
  local name=$1
  shift
  "$binary" serve --host 127.0.0.1 "$@" >"$work/$name.log" 2>&1 &
  servers+=($!)
  for _ in $(seq 600); do
    address=$(grep -o -m 1 'http://127[0-9.:]*' "$work/$name.log") && return
    kill -0 "${servers[-1]}" 2>/dev/null || break
    sleep 0.1
  done
  echo "failed server: $name does not start: $(tail -n 3 "$work/$name.log")" | tee -a "$results"
  return 1
}

# client NAME COMMAND...: runs one client's cases.
client() {
  local name=$1
  shift
  timeout 300 "$@" 2>"$work/errors" | tee "$work/out"
  local status=${PIPESTATUS[0]}
  cat "$work/out" >>"$results"
  if [ "$status" -ne 0 ] && ! grep -q '^failed ' "$work/out"; then
    echo "failed $name: exit status $status" | tee -a "$results"
  fi
  [ "$status" -eq 0 ] || tail -n 40 "$work/errors" >&2
}
skip() { echo "skipped $1: cannot be installed" | tee -a "$results"; }

openai_python=true openai_node=true
pypi openai 3.57.0 || openai_python=false
npm_package openai 6.49.0 || openai_node=false
cp "$here"/*.mjs "$folder/node"  # modules are looked for beside the program

# README's address where it is free, any other where it is not.
port=8000
(exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null && port=0
export DI_API_KEY=test-key DI_RECORDED=$work/recorded.jsonl DI_PLAIN_URL DI_SCRIPTED_URL
if start plain --port "$port"; then
  DI_PLAIN_URL=$address
  if $openai_python; then
    PATH=$folder/venv/bin:$PATH client stranger "$python" "$here/stranger.py" "$root/README.md" \
      "$folder/node"
  fi
  kill "${servers[-1]}" && wait "${servers[-1]}"
  unset 'servers[-1]'
fi

if start scripted --port 0 --scripted --api-key "$DI_API_KEY=tests"; then
  DI_SCRIPTED_URL=$address
  if $openai_python; then
    client openai-python "$python" "$here/openai_client.py"
  else
    skip openai-python
  fi
  if $openai_node; then
    client openai-node node "$folder/node/openai_client.mjs"
    if $openai_python; then client openai-node "$python" "$here/shapes.py" "$DI_RECORDED"; fi
  else
    skip openai-node
  fi
  if pypi langchain-openai 1.7.4; then
    client langchain-openai "$python" "$here/langchain_client.py"
  else
    skip langchain-openai
  fi
  if pypi litellm 1.110.2; then
    client litellm "$python" "$here/litellm_client.py"
  else
    skip litellm
  fi
  if npm_package ai 6.0.326 && npm_package @ai-sdk/openai-compatible 2.0.92; then
    client ai-sdk node "$folder/node/ai_sdk_client.mjs"
  else
    skip ai-sdk
  fi
fi

count() { grep -c "^$1 " "$results"; }
failed=$(count failed)
echo "$(count passed) passed, $failed failed, $(count skipped) skipped"
[ "$failed" -eq 0 ] && [ "$(count passed)" -gt 0 ]
