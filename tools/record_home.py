"""Record small homes made by a real Hermes, for tests that run without that Hermes.

    python -m tools.record_home --checkout DIR

writes tests/data/homes/VERSION.tar.xz with two homes:

    plain        made from nothing by the release of the checkout
    interrupted  a state.db of 0.19.0, upgraded by the release of the checkout, whose
                 `hermes sessions optimize-storage` was stopped half-way

The checkout needs its own environment in `.venv`. The tool does not change the checkout.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

from tools import real_home, releases

LESSON = Path(__file__).parent / "record_lesson.py"
KEPT = Path(__file__).parents[1] / "tests" / "data" / "homes"
OLD = "0.19.0"
"""The last release that writes the search index inline."""
PLACE = Path("/tmp/hermes-recording")
"""Homes are recorded under this path: some files of Hermes contain the path of their home."""
LEFT_OUT = ("-shm", "-wal", ".lock", ".pid")
MOST = 200_000
"""Maximum size of a recorded archive in bytes."""


def python_of(checkout: Path) -> Path:
    """Return the interpreter of a checkout."""
    return checkout / ".venv" / "bin" / "python"


def run(python: Path, home: Path, part: str) -> str:
    """Run one part of the lesson under an interpreter, and return its output."""
    done = subprocess.run(
        [str(python), "-I", "-B", str(LESSON), part],
        env=real_home.environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode:
        raise RuntimeError(f"{python}: {part} failed: {done.stderr.strip()[-2000:]}")
    return done.stdout


def plain(python: Path, home: Path) -> Path:
    """Let the release create a home from nothing."""
    home.mkdir(mode=0o700, parents=True)
    run(python, home, "home")
    return home


def interrupted(python: Path, home: Path) -> Path:
    """Create a home of 0.19.0 whose search index the newer release has started to rebuild."""
    plain(releases.python_of(OLD), home)
    run(python, home, "interrupt")
    return home


def record(checkout: Path, target: Path) -> None:
    """Write the archive of one release."""
    python = python_of(checkout)
    PLACE.mkdir(mode=0o700)
    try:
        homes = [plain(python, PLACE / "plain"), interrupted(python, PLACE / "interrupted")]
        target.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(target, "w:xz", preset=9) as archive:
            for home in homes:
                _add(archive, home, checkout)
    finally:
        shutil.rmtree(PLACE)
    size = target.stat().st_size
    if size > MOST:
        raise RuntimeError(f"{target.name} has {size} bytes, which is too much for a repository")
    print(f"{target.name}: {size} bytes")


def _add(archive: tarfile.TarFile, home: Path, checkout: Path) -> None:
    """Add the files of a home that tests need, without names, owners and times of this machine."""
    words = (os.uname().nodename, f"{Path.home()}/", str(checkout))
    for path in sorted(home.rglob("*")):
        name = str(path.relative_to(home.parent))
        if not path.is_file() or path.is_symlink() or name.endswith(LEFT_OUT):
            continue
        data = path.read_bytes()
        for word in words:
            if word.encode() in data:
                raise RuntimeError(f"{name} names something of this machine")
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(data), path.stat().st_mode & 0o777
        archive.addfile(entry, io.BytesIO(data))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Record homes made by a checkout of Hermes.")
    parser.add_argument("--checkout", type=Path, required=True, help="folder with a .venv")
    checkout = parser.parse_args().checkout.resolve()
    record(checkout, KEPT / f"{releases.version_of_checkout(checkout)}.tar.xz")


if __name__ == "__main__":
    main()
