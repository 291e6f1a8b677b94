"""Measure how `check` scales with database size, and `--deep` against the sqlite3 shell.

    python -m benchmarks.databases

All in one run, as ratios. Bars: `check` on a home with a state.db of 2 GB takes at most 1.5 times
as long as with one of 2 MB; `check --deep` is at least 0.8 times as fast as `PRAGMA
integrity_check` in the sqlite3 shell on the same file. That depends on the content of the file, so
it is measured on two: one of 2 GB with mostly long instructions, which are read quickly, and one of
1.1 GB with a quarter of a million messages, their indexes and their search index.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

from benchmarks import history
from benchmarks.startup import RELEASE
from benchmarks.timing import Cost, in_turn
from tools import real_home

MEGABYTE = 1024**2
LARGE = 2048 * MEGABYTE
SIZE_BAR = 1.5
DEEP_BAR = 0.8
TIMES = 4
"""Multiples of 280 MB of messages."""


def made(folder: Path, size: int, messages: int) -> Path:
    """Return a home of a real release with a history of this size, created once and kept."""
    home = folder / f"history-{RELEASE}-{size // MEGABYTE}" / "home"
    if home.exists():
        return home
    making = folder / "making"
    shutil.rmtree(making, ignore_errors=True)
    real_home.make(RELEASE, making / "home")
    fill(making / "home" / "state.db", size, messages)
    shutil.rmtree(home.parent, ignore_errors=True)
    making.rename(home.parent)
    return home


def fill(path: Path, size: int, messages: int) -> None:
    """Write searchable messages, then sessions with long instructions up to the size."""
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdefghijklmnop", k=6)) for _ in range(4000)]
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous=OFF")
        db.execute("BEGIN")
        for n in range(messages):
            text = " ".join(chance.choices(words, k=chance.randint(20, 200)))
            db.execute(
                "INSERT INTO messages (session_id, role, content, timestamp) "
                "VALUES ('one', 'user', ?, ?)",
                (text, float(n)),
            )
        db.execute("COMMIT")
        long = " ".join(chance.choices(words, k=9000))
        number = 0
        while path.stat().st_size < size:
            db.execute("BEGIN")
            for _ in range(min(1000, 1 + (size - path.stat().st_size) // len(long))):
                number += 1
                db.execute(
                    "INSERT INTO sessions (id, source, system_prompt, started_at) "
                    "VALUES (?, 'cli', ?, 1.0)",
                    (f"filling-{number}", f"{number} {long}"),
                )
            db.execute("COMMIT")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def compared(name: str, home: Path, shell: str, tool: list[str], environ: dict[str, str]) -> float:
    """Return how many times faster `check --deep` is than the shell."""
    address = f"file:{home / 'state.db'}?mode=ro&immutable=1"
    deep, check = [*tool, str(home), "--deep"], [shell, address, "PRAGMA integrity_check"]
    ours, theirs = in_turn([deep, check], 5, environ)
    show(f"check --deep, {name}", ours)
    show(f"sqlite3 shell, {name}", theirs)
    return theirs.wall / ours.wall


def show(name: str, cost: Cost) -> None:
    """Print one line of the table."""
    print(f"{name:<30} {cost.wall * 1000:>7.0f} ms {cost.cpu * 1000:>7.0f} ms", flush=True)


def main() -> int:
    """Measure, print the table, and fail when a bar is missed."""
    shell = shutil.which("sqlite3")
    folder = history.folder()
    small, large = made(folder, 2 * MEGABYTE, 400), made(folder, LARGE, 20_000)
    tool = [sys.executable, "-m", "hermes_doctor", "check", "--home"]
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environ |= {"HOME": tempfile.gettempdir()}
    print(f"{'':<30} {'wall':>10} {'cpu':>10}")
    looks = in_turn([[*tool, str(home)] for home in (small, large)], 15, environ)
    for name, cost in zip(("check, 2 MB", "check, 2 GB"), looks, strict=True):
        show(name, cost)
    ratio = looks[1].wall / looks[0].wall
    speeds = []
    if shell:
        for name, home in (("2 GB", large), ("messages", history.home(TIMES))):
            speeds.append((name, compared(name, home, shell, tool, environ)))
    print(f"2 GB takes {ratio:.2f} times as long as 2 MB (bar: at most {SIZE_BAR:g})")
    for name, speed in speeds:
        print(
            f"--deep, {name}: {speed:.2f} times as fast as the sqlite3 shell "
            f"(bar: at least {DEEP_BAR:g})"
        )
    if not shell:
        print("there is no sqlite3 shell to compare with")
    return int(ratio > SIZE_BAR or any(speed < DEEP_BAR for _, speed in speeds))


if __name__ == "__main__":
    sys.exit(main())
