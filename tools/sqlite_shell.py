"""Compile a newer sqlite3 shell than the machine has into the cache, for comparisons.

    python -m tools.sqlite_shell        prints its path

Debian 12's shell was built without what `.recover` needs. A package of the npm registry contains
the whole source of a newer SQLite with its shell; its hash is pinned here. A C compiler is needed.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
from pathlib import Path

from tools import releases

VERSION = "3.52.0"
PACKAGE = "https://registry.npmjs.org/sqlite3/-/sqlite3-6.0.1.tgz"
SHA512 = (
    "5f4733514306dad992a89a4441aded0ae6521ca231f0fc0ce77bcb6732a9fe8e"
    "91a72db97e255f8dd6e767df3c33cf8edd9591d628742b6e7956e9826f73009d"
)
INSIDE = "package/deps/sqlite-autoconf-3520000.tar.gz"
SOURCES = ("sqlite3.c", "sqlite3.h", "shell.c")
FEATURES = ("DBPAGE_VTAB", "DBSTAT_VTAB", "FTS3", "FTS4", "FTS5", "RTREE", "MATH_FUNCTIONS")


def place() -> Path:
    """Return the path of the shell once it is built."""
    return releases.cache().parent / "shells" / VERSION / "sqlite3"


def shell() -> Path:
    """Return the shell, after building it if needed; raise if it cannot be built."""
    if place().exists():
        return place()
    with tempfile.TemporaryDirectory() as room:
        folder = Path(room)
        for name, data in _sources(_package()).items():
            (folder / name).write_bytes(data)
        built = _compile(folder)
        place().parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place().parent) as beside:
            Path(shutil.copy(built, Path(beside) / "shell")).rename(place())
    return place()


def _package() -> bytes:
    with urllib.request.urlopen(PACKAGE, timeout=60) as answer:
        data: bytes = answer.read()
    if hashlib.sha512(data).hexdigest() != SHA512:
        raise RuntimeError(f"{PACKAGE} is not the package that was expected")
    return data


def _sources(package: bytes) -> dict[str, bytes]:
    found = {}
    with tarfile.open(fileobj=io.BytesIO(package)) as outer:
        inner = outer.extractfile(INSIDE)
        assert inner is not None
        with tarfile.open(fileobj=io.BytesIO(inner.read())) as archive:
            for member in archive:
                name = Path(member.name).name
                if name in SOURCES and (file := archive.extractfile(member)):
                    found[name] = file.read()
    return found


def _compile(folder: Path) -> Path:
    features = [f"-DSQLITE_ENABLE_{feature}" for feature in FEATURES]
    command = ["cc", "-O2", *features, "shell.c", "sqlite3.c", "-o", "shell"]
    done = subprocess.run(
        [*command, "-lm", "-lpthread", "-ldl"], cwd=folder, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"the shell cannot be compiled: {done.stderr.strip()[-500:]}")
    return folder / "shell"


if __name__ == "__main__":
    print(shell())
