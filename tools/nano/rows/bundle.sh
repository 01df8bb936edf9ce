#!/usr/bin/env bash
# Builds nano_rows and gathers it with its libraries, the C library and its loader among them, for
# x86-64 Linux machines that lack them:
#   tools/nano/rows/bundle.sh OUT   makes OUT/nano_rows, OUT/lib/ and OUT/nano_rows.sh to run it
set -euo pipefail
out=${1:?Usage: tools/nano/rows/bundle.sh OUT}
mkdir -p "$out/lib"
out=$(cd "$out" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
build=${DI_BUILD:-build/release}
cmake --preset release -B "$build" >&2
cmake --build "$build" -j "$(nproc)" --target nano_rows >&2
strip -o "$out/nano_rows" "$build/tools/nano/rows/nano_rows"
ldd "$out/nano_rows" | grep -o '/[^ ]*' | sort -u | grep '\.so' | xargs cp -L -t "$out/lib"
cat >"$out/nano_rows.sh" <<'RUN'
#!/bin/sh
here=$(dirname "$0")
exec "$here/lib/ld-linux-x86-64.so.2" --library-path "$here/lib" "$here/nano_rows" "$@"
RUN
chmod +x "$out/nano_rows.sh"
du -sh "$out"
