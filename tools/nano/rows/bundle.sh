#!/usr/bin/env bash
# Builds nano_rows and gathers it with its libraries, the C library and its loader among them, for
# x86-64 Linux machines that lack them:
#   tools/nano/rows/bundle.sh OUT   makes OUT/rows.tar.xz; unpacked, nano_rows.sh runs it
set -euo pipefail
out=${1:?Usage: tools/nano/rows/bundle.sh OUT}
mkdir -p "$out"
out=$(cd "$out" && pwd)
gathered=$(mktemp -d)
trap 'rm -rf "$gathered"' EXIT
mkdir "$gathered/lib"
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
build=${DI_BUILD:-build/release}
cmake --preset release -B "$build" >&2
cmake --build "$build" -j "$(nproc)" --target nano_rows >&2
strip -o "$gathered/nano_rows" "$build/tools/nano/rows/nano_rows"
ldd "$gathered/nano_rows" | grep -o '/[^ ]*' | sort -u | grep '\.so' |
  xargs cp -L -t "$gathered/lib"
cat >"$gathered/nano_rows.sh" <<'RUN'
#!/bin/sh
here=$(dirname "$0")
exec "$here/lib/ld-linux-x86-64.so.2" --library-path "$here/lib" "$here/nano_rows" "$@"
RUN
chmod +x "$gathered/nano_rows.sh"
tar -C "$gathered" -cJf "$out/rows.tar.xz" .
du -sh "$out"
