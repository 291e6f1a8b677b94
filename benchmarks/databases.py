"""How a look scales with a database: 2 MB beside 2 GB, and `--deep` beside SQLite's own shell.

    python -m benchmarks.databases

All in one run, as ratios. Bars: `check` on a home with a state.db of 2 GB takes at most 1.5 times
as long as with one of 2 MB; `check --deep` is at least 0.8 times as fast as `PRAGMA
integrity_check` in the sqlite3 shell on the same file.
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

from benchmarks.startup import RELEASE, Cost, measure
from tools import real_home, releases

MEGABYTE = 1024**2
LARGE = 2048 * MEGABYTE
SIZE_BAR = 1.5
DEEP_BAR = 0.8


def made(folder: Path, size: int, messages: int) -> Path:
    """A home of a real release whose history is that large, made once and kept."""
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
    """Messages that can be searched for, and sessions with long instructions for the rest."""
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


def main() -> int:
    """Measure, print the table, and fail when a bar is missed."""
    shell = shutil.which("sqlite3")
    folder = releases.cache().parent / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    small, large = made(folder, 2 * MEGABYTE, 400), made(folder, LARGE, 20_000)
    tool = [sys.executable, "-m", "hermes_doctor", "check", "--home"]
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environ |= {"HOME": tempfile.gettempdir()}
    rows: list[tuple[str, Cost]] = [
        ("check, 2 MB", measure([*tool, str(small)], 15, environ)),
        ("check, 2 GB", measure([*tool, str(large)], 15, environ)),
        ("check --deep, 2 GB", measure([*tool, str(large), "--deep"], 3, environ)),
    ]
    if shell:
        address = f"file:{large / 'state.db'}?mode=ro&immutable=1"
        command = [shell, address, "PRAGMA integrity_check"]
        rows.append(("sqlite3 shell, 2 GB", measure(command, 3, environ)))
    print(f"{'':<22} {'wall':>10} {'cpu':>10}")
    for name, cost in rows:
        print(f"{name:<22} {cost.wall * 1000:>7.0f} ms {cost.cpu * 1000:>7.0f} ms")
    walls = [cost.wall for _, cost in rows]
    ratio = walls[1] / walls[0]
    print(f"2 GB takes {ratio:.2f} times as long as 2 MB (bar: at most {SIZE_BAR:g})")
    if not shell:
        print("there is no sqlite3 shell to compare with")
        return int(ratio > SIZE_BAR)
    speed = walls[3] / walls[2]
    print(f"--deep: {speed:.2f} times as fast as the sqlite3 shell (bar: at least {DEEP_BAR:g})")
    return int(ratio > SIZE_BAR or speed < DEEP_BAR)


if __name__ == "__main__":
    sys.exit(main())
