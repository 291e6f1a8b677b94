"""Measure the memory of backup commands for many files and for a large database.

    python -m benchmarks.memory [--files 200000] [--database 1024] [--folder DIR]

Starts each command and samples it and all its child processes, about every 20 ms:

- one: the most memory that one of the processes had (RSS);
- all: the most that all of them together had, pages that they share counted once (PSS).

Bar: `backup create` stays below 150 MB in both, whatever the size of the home.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.timing import environment, load

BAR = 150
OFTEN = 0.02
DEFAULT_FILES = 200_000
DEFAULT_MEGABYTES = 1024


@dataclass
class Peak:
    """The peak memory of a command and its processes, in bytes."""

    one: int = 0
    all: int = 0
    own: int = 0
    """Of one process, without mapped files, whose pages the kernel can take back."""
    seconds: float = 0.0
    code: int = 0

    def __str__(self) -> str:
        return f"one {self.one >> 20:4} MB, all {self.all >> 20:4} MB, {self.seconds:6.1f} s"


def measured(command: list[str]) -> Peak:
    """Run a command and measure its memory."""
    return sampled(command, stdout=subprocess.DEVNULL, env=environment())


def sampled(command: list[str], **options: Any) -> Peak:
    """Run a command with these options of Popen, and measure its memory."""
    peak = Peak()
    started = time.monotonic()
    process = subprocess.Popen(command, **options)
    while process.poll() is None:
        rss = pss = 0
        for pid in _family(process.pid):
            mine, shared, own = _memory(pid)
            rss, pss, peak.own = max(rss, mine), pss + shared, max(peak.own, own)
        peak.one, peak.all = max(peak.one, rss), max(peak.all, pss)
        time.sleep(OFTEN)
    peak.seconds, peak.code = time.monotonic() - started, process.returncode
    return peak


def _family(pid: int) -> Iterator[int]:
    yield pid
    with contextlib.suppress(OSError):
        for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from _family(int(one))


def _memory(pid: int) -> tuple[int, int, int]:
    """Return RSS, PSS and memory without mapped files of a process, in bytes."""
    found = {"Rss": 0, "Pss": 0, "Anonymous": 0}
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
            name, _, rest = line.partition(":")
            if name in found:
                found[name] = int(rest.split()[0]) * 1024
    return found["Rss"], found["Pss"], found["Anonymous"]


def fill(home: Path, files: int) -> None:
    """Write a home of many small files."""
    home.mkdir(parents=True)
    (home / "config.yaml").write_text("model:\n  provider: openrouter\n")
    for number in range(files):
        folder = home / "sessions" / f"{number // 1000:04}"
        if number % 1000 == 0:
            folder.mkdir(parents=True)
        (folder / f"session-{number:08}.json").write_bytes(b'{"messages": []}')


def database(path: Path, megabytes: int) -> None:
    """Write a database of about this many megabytes, in WAL mode."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, content)")
        for _ in range(megabytes // 4):
            with db:
                db.executemany(
                    "INSERT INTO messages (content) VALUES (?)",
                    [(os.urandom(3900),) for _ in range(1024)],
                )
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Run another process that writes to a database all the time."""
    script = (
        "import os, sqlite3, sys, time\n"
        "db = sqlite3.connect(sys.argv[1], timeout=30)\n"
        "while True:\n"
        "    with db:\n"
        "        db.execute('INSERT INTO messages (content) VALUES (?)', (os.urandom(999),))\n"
        "    time.sleep(0.01)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(path)])
    try:
        time.sleep(1)
        yield
    finally:
        process.kill()
        process.wait()


def doctor(home: Path, *words: str) -> Peak:
    """Measure one command of hermes-doctor on a home."""
    return measured([sys.executable, "-m", "hermes_doctor", *words, "--home", str(home)])


def say(what: str, peak: Peak) -> bool:
    """Print a line, and return whether the bar is missed."""
    missed = max(peak.one, peak.all) > BAR << 20
    code = f"  (exit code {peak.code})" if peak.code else ""
    print(f"{what:44} {peak}{code}{'  MISSED' if missed else ''}", flush=True)
    return missed


def main() -> int:
    """Measure, print, and fail when `backup create` misses the bar."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--files", type=int, default=DEFAULT_FILES)
    parser.add_argument("--database", type=int, default=DEFAULT_MEGABYTES)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--others", action="store_true", help="Also list, verify, prune, restore.")
    options = parser.parse_args()
    print(load())
    folder = Path(tempfile.mkdtemp(prefix="memory-", dir=options.folder))
    missed = False
    try:
        if options.files:
            home = folder / "many"
            fill(home, options.files)
            what = f"{options.files} files"
            missed |= say(f"{what}: first backup", doctor(home, "backup", "create"))
            missed |= say(f"{what}: second backup", doctor(home, "backup", "create"))
            if options.others:
                for words in (["list"], ["verify"], ["verify", "--all"], ["prune", "--keep", "9"]):
                    say(f"{what}: {' '.join(words)}", doctor(home, "backup", *words))
                newest = sorted(os.listdir(home / "backups" / "doctor"))[-1]
                if newest == "runs":
                    newest = sorted(os.listdir(home / "backups" / "doctor"))[-2]
                for one in ("sessions/0000", None):
                    words = ["restore", newest, *([one] if one else []), "--yes"]
                    say(f"{what}: restore {one or 'all'}", doctor(home, "backup", *words))
            shutil.rmtree(home)
        if options.database:
            home = folder / "large"
            fill(home, 10)
            database(home / "state.db", options.database)
            what = f"{options.database} MB database"
            missed |= say(f"{what}: at rest", doctor(home, "backup", "create"))
            with writing(home / "state.db"):
                full = ("backup", "create", "--full")
                missed |= say(f"{what}: in use, full", doctor(home, *full))
                missed |= say(f"{what}: in use, second", doctor(home, "backup", "create"))
                missed |= say(f"{what}: in use, third", doctor(home, "backup", "create"))
            if options.others:
                say(f"{what}: verify", doctor(home, "backup", "verify"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
