# Sourced by smoke.sh and train.sh: unpacks what was carried to the training machine, sets caches.
#   CARRY: folder with *.xz of the material, rows.tar.xz of rows/bundle.sh, and perhaps cache.tar.xz
#          of an earlier run
#   RUN:   where everything of the run lives
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
PYTHON=${PYTHON:-python3}
RUN=${NANO_RUN:-${TMPDIR:-/tmp}/nano_run}
export PYTHONUNBUFFERED=1
export TORCHINDUCTOR_CACHE_DIR=$RUN/cache/inductor TRITON_CACHE_DIR=$RUN/cache/triton

unpack() {  # CARRY
  mkdir -p "$RUN/material" "$RUN/cache"
  [ -f "$RUN/unpacked" ] && return
  "$PYTHON" - "$1" "$RUN" <<'PY'
import lzma, os, shutil, sys, tarfile
carry, run = sys.argv[1:]
for name in sorted(os.listdir(carry)):
    source = os.path.join(carry, name)
    if name in ("cache.tar.xz", "rows.tar.xz"):
        with tarfile.open(source) as tar:
            folder = os.path.join(run, "cache") if name == "cache.tar.xz" else run
            tar.extractall(folder, filter="data")
    elif name.endswith(".xz"):
        target = os.path.join(run, "material", name[:-3])
        with lzma.open(source) as packed, open(target, "wb") as out:
            shutil.copyfileobj(packed, out, 1 << 20)
    else:
        shutil.copy(source, os.path.join(run, "material"))
PY
  date > "$RUN/unpacked"
}

pack_cache() {  # FILE: only if it may travel
  "$PYTHON" - "$RUN/cache" "$1" <<'PY'
import lzma, os, sys, tarfile
folder, path = sys.argv[1:]
with lzma.open(path, "wb", preset=1) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
    tar.add(folder, ".", filter=lambda entry: None if entry.name.endswith(".lock") else entry)
size = os.path.getsize(path)
print(f"{path}: {size >> 20} MiB")
if size > 15 << 20:
    os.remove(path)
    print("the cache is too large to travel and was left behind")
PY
}

flags() {  # of train.py
  rows=$RUN/nano_rows
  [ -f "$rows.sh" ] && rows=$rows.sh
  printf '%s\n' --model "$root/models/nano" --material "$RUN/material" --rows "$rows" \
    --out "$RUN/out"
}
