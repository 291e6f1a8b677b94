"""Compare a 1 GB backup while a real Hermes writes with `cp` and fsync under the same writer.

    python -m benchmarks.live_backup [--rounds 5]

All in one run, round by round and in alternating order, as a ratio; with the CPU time of both,
which is more reliable than the wall clock on a busy machine. Bars: the writer gets no error, the
backup has every message that was committed before it started and the whole earlier history,
SQLite's integrity check passes, and it takes at most twice as long as copying the database and its
write-ahead log.

Each round has its own writer: at its thousandth write a Hermes process rewrites its whole search
index, which takes many seconds and makes a write-ahead log of hundreds of megabytes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import history
from benchmarks.salvage import RELEASE
from benchmarks.timing import Cost, environment, load, middle, once
from tools import real_home, releases

TIMES = 4
"""Multiples of 280 MB."""
BAR = 2.0
BEFORE = 30
"""Messages that a writer has written before the measurement starts."""
WRITER = """
import json, os, select, struct, sys, time
from pathlib import Path
from hermes_state import SessionDB

session, told = sys.argv[1], os.open(sys.argv[2], os.O_WRONLY)
history = SessionDB(Path(os.environ["HERMES_HOME"]) / "state.db")
history.create_session(session, "cli")
written, errors, longest = 0, [], 0.0
while not select.select([sys.stdin], [], [], 0)[0]:
    start = time.perf_counter()
    try:
        history.append_message(session, "user", f"number {written} written while it is copied")
        written += 1
        os.pwrite(told, struct.pack("q", written), 0)
    except Exception as error:
        errors.append(f"{type(error).__name__}: {error}")
    longest = max(longest, time.perf_counter() - start)
    time.sleep(0.02)
kept = len(history.get_messages(session))
history.close()
print(json.dumps({"written": written, "errors": errors, "kept": kept, "longest": longest}))
"""
"""Writes until its input ends; stores the number of committed messages in a file."""


@dataclass
class Round:
    """The measurements of one round, and the defects of its backup."""

    ours: Cost
    copy: Cost
    committed: int
    """Messages committed before the backup started."""
    written: int
    longest: float
    """The longest time that a write of the writer took."""
    wrong: list[str]


class Writer:
    """A real Hermes that writes to a home."""

    def __init__(self, home: Path, session: str) -> None:
        self.session = session
        self.told = home.parent / "told"
        self.told.write_bytes(bytes(8))
        self.process = subprocess.Popen(
            [str(releases.python_of(RELEASE)), "-I", "-c", WRITER, session, str(self.told)],
            env=real_home.environment(home),
            cwd=home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        while self.committed < BEFORE and self.process.poll() is None:
            time.sleep(0.02)

    @property
    def committed(self) -> int:
        """Return how many messages it has written so far."""
        number: int = struct.unpack("q", self.told.read_bytes())[0]
        return number

    def end(self) -> dict[str, Any]:
        """Stop it and return its report."""
        out, _ = self.process.communicate(timeout=120)
        facts: dict[str, Any] = json.loads(out)
        return facts


@contextlib.contextmanager
def patient() -> Iterator[Path]:
    """Create a folder with a writable copy of the home."""
    with tempfile.TemporaryDirectory(prefix="live-", dir=history.folder()) as folder:
        shutil.copytree(history.home(TIMES), Path(folder) / "home")
        os.sync()
        yield Path(folder)


def timed(command: list[str]) -> Cost:
    """Return the cost of a command on an idle disk; raise if it fails."""
    os.sync()
    time.sleep(1)
    return once(command, environment(), must=True)


def seconds(cost: Cost) -> str:
    """Say what a command took."""
    return f"{cost.wall:6.2f} s ({cost.cpu:.2f} s of CPU)"


def backup(folder: Path, writer: Writer, messages: int) -> tuple[Cost, int, list[str]]:
    """Run our own backup; return its cost, the messages committed before it, and its defects."""
    command = [sys.executable, "-m", "hermes_doctor", "backup", "create"]
    command += ["--home", str(folder / "home"), "--vault", str(folder / "vault")]
    committed = writer.committed
    cost = timed(command)
    (made,) = (folder / "vault").iterdir()
    wrong = faults(made / "files" / "state.db", writer.session, messages, committed)
    shutil.rmtree(folder / "vault")
    return cost, committed, wrong


def plain(folder: Path) -> Cost:
    """Copy the database and its write-ahead log with `cp`, and sync both to the disk."""
    target = folder / "plain"
    target.mkdir()
    files = [str(folder / "home" / name) for name in ("state.db", "state.db-wal")]
    copies = [str(target / Path(file).name) for file in files]
    script = 'cp "$1" "$2" "$5" && sync "$3" "$4" "$5"'
    try:
        return timed(["sh", "-c", script, "sh", *files, *copies, str(target)])
    finally:
        shutil.rmtree(target)


def faults(database: Path, session: str, messages: int, committed: int) -> list[str]:
    """Return the defects of the copy of a history that had this many messages before."""
    with contextlib.closing(sqlite3.connect(f"file:{database}?immutable=1", uri=True)) as copy:
        wrong = [row[0] for row in copy.execute("PRAGMA integrity_check(3)") if row[0] != "ok"]
        mine, texts = copy.execute(
            "SELECT count(*), count(DISTINCT content) FROM messages WHERE session_id = ?", [session]
        ).fetchone()
        (others,) = copy.execute(
            "SELECT count(*) FROM messages WHERE session_id <> ?", [session]
        ).fetchone()
    if mine < committed or texts != mine:
        wrong.append(f"{mine} of the {committed} messages that were committed are there")
    if others != messages:
        wrong.append(f"{others} of {messages} older messages are there")
    return wrong


def count(database: Path) -> int:
    """Return the number of messages in a history that is not in use."""
    with contextlib.closing(sqlite3.connect(database)) as there:
        (number,) = there.execute("SELECT count(*) FROM messages").fetchone()
        return int(number)


def one(folder: Path, number: int) -> Round:
    """Measure both methods with one writer, in alternating order.

    The first copy is removed before the second starts, so that both have the same free memory.
    """
    messages = count(folder / "home" / "state.db")
    writer = Writer(folder / "home", f"written-meanwhile-{number}")
    try:
        copy = plain(folder) if number % 2 else None
        ours, committed, wrong = backup(folder, writer, messages)
        copy = copy or plain(folder)
    finally:
        said = writer.end()
    wrong += said["errors"]
    if said["kept"] != said["written"]:
        wrong.append(f"the writer has {said['kept']} of its {said['written']} messages")
    return Round(ours, copy, committed, said["written"], said["longest"], wrong)


def main() -> int:
    """Measure, print the table, and fail when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rounds = []
    with patient() as folder:
        size = (folder / "home" / "state.db").stat().st_size
        print(f"{load()}; {size >> 20} MB under a writer", flush=True)
        one(folder, 0)  # warms up
        for number in range(1, options.rounds + 1):
            done = one(folder, number)
            rounds.append(done)
            print(
                f"backup {seconds(done.ours)}   cp + fsync {seconds(done.copy)}   "
                f"{done.ours.wall / done.copy.wall:5.2f}   writer: {done.committed} + "
                f"{done.written - done.committed} messages, at most {done.longest * 1000:.0f} ms",
                *done.wrong,
                flush=True,
            )
    # A ratio per round, because other disk activity affects both methods.
    ratio, spread = middle([one.ours.wall / one.copy.wall for one in rounds])
    print(f"live backup: {ratio:.2f} ± {spread / 2:.2f} times cp with fsync (bar: at most {BAR:g})")
    return int(ratio > BAR or any(one.wrong for one in rounds))


if __name__ == "__main__":
    sys.exit(main())
