#!/usr/bin/env bash
# Fetches and builds XGrammar, the grammar library behind src/tokens/grammar.h, once for all build
# folders of this tree. Prints the folder that holds include/ and libxgrammar.a.
# Usage: tools/xgrammar.sh   called by cmake/xgrammar.cmake
# Everything lies in build/xgrammar, or in DI_XGRAMMAR_CACHE if that is set: the source archive from
# PyPI (or put there by hand, for a machine without a network), and one folder a compiler.
# Patched in one place (fix_merging), and built without link-time optimisation, which the library
# switches on by itself: with it and g++ 12 the matcher crashes on ordinary JSON
# (Grammar.NumbersInUntypedValuesDoNotCrash).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=0.2.9
sha256=87b466bca2475e29bb0323abc62c6c33cbcbcff47e5fb800a3e2099ac9620b90

cache=${DI_XGRAMMAR_CACHE:-$PWD/build/xgrammar}
archive=$cache/xgrammar-$version.tar.gz
# One compiler for every preset: a sanitizer's or clang's build links the same library.
compiler=$(command -v g++ || command -v c++)
flags="-O3 -DNDEBUG -fno-lto -fno-omit-frame-pointer -Wno-error -w"
# A state may be joined with others as "reached the same way" or as "an end with nothing behind it".
# Release 0.2.9 does both to one state in one pass, and so joins states that differ: `b{1,2}|b`
# takes "bbb" (Grammar.ExpressionsMeanWhatTheySay). The second waits for the next pass instead.
fix='if (outgoing_count == 0 \&\& union_find_set.Count(i)) continue;'
fix_merging="s/^ *if (outgoing_count == 0) {\$/$fix\n&/"
key=$({ "$compiler" --version; echo "$sha256 $flags $fix_merging"; } | sha256sum | cut -c1-12)
folder=$cache/$version-$key

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9  # two build folders may be configured at once
if [ -f "$folder/libxgrammar.a" ]; then
  echo "$folder"
  exit 0
fi

is_whole() { sha256sum --quiet -c - 2>/dev/null <<<"$sha256  $1"; }

# pip, so that the user's mirrors and proxies count.
fetch() {
  echo "xgrammar: fetching the source archive of release $version with pip" >&2
  local venv=$cache/venv download=$cache/download
  rm -rf "$venv" "$download"
  if ! { python3 -m venv "$venv" &&
    "$venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps \
      --no-binary xgrammar --dest "$download" "xgrammar==$version"; } >"$cache/pip.log" 2>&1; then
    echo "xgrammar: pip cannot download xgrammar $version (its source archive):" \
      "$(grep -m 1 -i error "$cache/pip.log" || tail -n 1 "$cache/pip.log");" \
      "without a network put the archive at $archive" >&2
    exit 1
  fi
  mv "$download/xgrammar-$version.tar.gz" "$archive"
  rm -rf "$venv" "$download"
}

[ -f "$archive" ] || fetch
if ! is_whole "$archive"; then
  echo "xgrammar: $archive: SHA-256 is $(sha256sum "$archive" | cut -d' ' -f1)," \
    "expected $sha256; delete it and build again" >&2
  exit 1
fi

echo "xgrammar: building release $version with $compiler, about 2.5 minutes of one processor" >&2
work=$folder.work
rm -rf "$work"
mkdir -p "$work/build"
tar -xzf "$archive" -C "$work" --strip-components=1
sed -i "$fix_merging" "$work/cpp/fsm.cc"
if [ "$(grep -c 'union_find_set.Count(i)) continue;' "$work/cpp/fsm.cc")" != 1 ]; then
  echo "xgrammar: cpp/fsm.cc has changed, so fix_merging in $0 does not apply" >&2
  exit 1
fi
printf 'set(XGRAMMAR_BUILD_%s OFF)\n' PYTHON_BINDINGS CXX_TESTS >"$work/build/config.cmake"
launcher=()
if command -v ccache >/dev/null; then
  launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  export CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1  # clones of this tree share objects
fi
# A compiler process takes up to 1 GiB.
jobs=$(awk -v cpus="$(nproc)" '/^MemAvailable/ {n = int($2 / 1048576); if (n < 1) n = 1;
  print (n < cpus ? n : cpus)}' /proc/meminfo)
if ! { env -u CXXFLAGS cmake -G Ninja -S "$work" -B "$work/build" -DCMAKE_BUILD_TYPE=None \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" "${launcher[@]}" &&
  cmake --build "$work/build" -j "$jobs"; } >"$cache/build.log" 2>&1; then
  tail -n 20 "$cache/build.log" >&2
  echo "xgrammar: the build failed; the whole log: $cache/build.log" >&2
  exit 1
fi

rm -rf "$folder"
mkdir -p "$folder.new"
cp -r "$work/include" "$work/3rdparty/dlpack/include/dlpack" "$folder.new/"
mv "$folder.new/dlpack" "$folder.new/include/"
cp "$work/LICENSE" "$work/NOTICE" "$work/build/libxgrammar.a" "$folder.new/"
mv "$folder.new" "$folder"
rm -rf "$work"
echo "$folder"
