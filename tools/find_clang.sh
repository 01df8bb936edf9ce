# find_clang: prints the oldest clang++ that compiles the tree; newer ones do too. To be sourced.
find_clang() {
  local name
  for name in clang++-{16..22} clang++; do
    if command -v "$name" >/dev/null && [ "$("$name" -dumpversion | cut -d. -f1)" -ge 16 ]; then
      echo "$name"
      return
    fi
  done
  echo "no clang++ of release 16 or newer was found; tools/setup.sh fuzz installs one" >&2
  return 1
}
