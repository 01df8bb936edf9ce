#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages that are missing; silent and quick when none is.
# Usage: tools/setup.sh [build|test|cuda|fuzz|clients]...   build: to compile (default); test: to
#        run every test; cuda: to fetch the CUDA compiler from PyPI; fuzz: clang with libFuzzer, for
#        tests/fuzz/run.sh; clients: Node.js and Chromium, for tests/clients/run.sh and
#        tests/page/run.sh. For Debian 12 and 13, Ubuntu 24.04.
set -euo pipefail

build="g++ cmake ninja-build ccache pkg-config libabsl-dev libcli11-dev libgtest-dev libpcre2-dev
  libsimdjson-dev libspdlog-dev libssl-dev libtomlplusplus-dev libutf8proc-dev nlohmann-json3-dev
  prometheus-cpp-dev python3 python3-venv ca-certificates"
test="$build"
cuda="$build"
# clang 16 or newer, Boost 1.81 or newer: Debian 12's defaults are older, the newer ones have a
# number in their names.
clang="clang libclang-rt-dev" boost=libboost-dev
if grep -q '^VERSION_CODENAME=bookworm' /etc/os-release 2>/dev/null; then
  clang="clang-16 libclang-rt-16-dev" boost=libboost1.81-dev
fi
build+=" $boost" test+=" $boost" cuda+=" $boost"
fuzz="$test $clang"
# A Node.js from elsewhere brings npm along.
clients="$test curl"
command -v npm >/dev/null || clients+=" nodejs npm"
# Ubuntu's own chromium package is an empty shell around a snap.
grep -q '^ID=ubuntu' /etc/os-release 2>/dev/null || clients+=" chromium"

wanted=
for group in "${@:-build}"; do
  case $group in
    build | test | cuda | fuzz | clients) wanted+=" ${!group}" ;;
    *)
      echo "tools/setup.sh: unknown group '$group', expected build, test, cuda, fuzz or clients" >&2
      exit 2
      ;;
  esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: no apt-get here; what these Debian packages hold is taken to be there:" $wanted >&2
  exit 0
fi

# Names of the wanted packages that are not installed.
missing() {
  local installed
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null |
    sed -n 's/^installed //p' || true)
  comm -23 <(printf '%s\n' $wanted | sort -u) <(sort -u <<<"$installed")
}

packages=$(missing)
[ -n "$packages" ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: missing packages, and neither root nor sudo to install them:" $packages >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "setup: installing" $packages >&2
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=600 "$@" \
    </dev/null >&2
}
apt update
apt install --no-install-recommends $packages

packages=$(missing)
if [ -n "$packages" ]; then
  echo "setup: still missing after apt-get install:" $packages >&2
  exit 1
fi
