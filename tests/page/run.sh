#!/usr/bin/env bash
# The page in headless Chromium against `deepinfer serve` with the bundled model. Prints
# `N passed, N failed, N skipped`; without Chromium, Node.js or Playwright every test is skipped.
# Usage: run.sh [NAME...]       only tests whose name contains one of NAME
#        run.sh --screenshots   no tests: makes docs/images/chat.png and dashboard.png
# Environment: DI_DEEPINFER  the program (build/current/src/apps/deepinfer)
#              DI_PAGE       takes the page's files from this folder, to try changes without a build
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
modules=$root/build/clients/page
package=$modules/node_modules/playwright-core
playwright=1.60.0  # the last for Node.js 18, which Debian 12 has

why=
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
  why="Node.js is missing; tools/setup.sh clients installs it"
elif ! command -v "${CHROMIUM:=chromium}" >/dev/null; then
  why="Chromium is missing; tools/setup.sh clients installs it"
elif ! grep -qs "\"version\": \"$playwright\"" "$package/package.json"; then
  mkdir -p "$modules"
  npm install --prefix "$modules" --no-save --no-audit --no-fund --ignore-scripts \
    "playwright-core@$playwright" >"$modules/npm.log" 2>&1 ||
    why="npm cannot install playwright-core $playwright, see $modules/npm.log"
fi
if ! command -v node >/dev/null; then
  names=$(cat "$here"/*_tests.mjs | awk -v RS='\ntest\\(' 'NR > 1 {
    sub(/^[ \n]+/, "")
    rest = substr($0, 2)
    print substr(rest, 1, index(rest, substr($0, 1, 1)) - 1)
  }')
  sed "s/.*/SKIPPED &: ${why//\//\\/}/" <<<"$names"
  echo "0 passed, 0 failed, $(wc -l <<<"$names") skipped"
  exit 0
fi

DI_DEEPINFER=${DI_DEEPINFER:-$root/build/current/src/apps/deepinfer}
if [ ! -x "$DI_DEEPINFER" ]; then
  echo "tests/page/run.sh: no $DI_DEEPINFER; ./build.sh deepinfer makes it" >&2
  exit 1
fi
export DI_DEEPINFER CHROMIUM DI_SKIP="$why" DI_PLAYWRIGHT="$package/index.mjs"
script=run.mjs
if [ "${1:-}" = --screenshots ]; then
  script=screenshots.mjs
  [ -z "$why" ] || { echo "$why" >&2; exit 1; }
fi
exec node "$here/$script" "$@"
