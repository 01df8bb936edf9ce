# Sourced by build.sh: where is a CUDA compiler of release 13.0 or newer? Sets CUDACXX for CMake.

is_nvcc_13() {
  local release
  release=$("$1" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
  [ "${release:-0}" -ge 13 ]
}

# True and CUDACXX set if the environment, the path, the usual folder or an earlier fetch has one.
find_nvcc() {
  local at
  for at in "${CUDACXX:-}" "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc \
    "$PWD"/build/cuda/lib/python3*/site-packages/nvidia/cu13/bin/nvcc; do
    if [ -x "$at" ] && is_nvcc_13 "$at"; then
      export CUDACXX=$at
      return 0
    fi
  done
  return 1
}

# The compiler and its headers as PyPI packages, all of release 13.0: mixed releases do not link.
fetch_nvcc() {
  echo "build.sh: no nvcc >= 13.0 found; fetching one from PyPI into build/cuda (about 300 MB)" >&2
  tools/setup.sh cuda
  python3 -m venv build/cuda >&2
  build/cuda/bin/pip install --quiet \
    nvidia-cuda-{nvcc,runtime,cccl,crt}==13.0.* nvidia-nvvm==13.0.* >&2
  # nvcc tells the linker to look in lib64.
  ln -sfn lib "$(echo build/cuda/lib/python3*/site-packages/nvidia/cu13)/lib64"
  find_nvcc || { echo "build.sh: the fetched packages hold no nvcc >= 13.0" >&2 && return 1; }
}
