"""Measure how `check` scales: each large thing against the home of a bot that has worked a month.

    python -m benchmarks.scale [--runs 11] [--only NAME]

The small home is that of `used_home`, with a state.db of 40 MB. Each other home is a copy of it in
which one thing is large:

- databases: state.db and kanban.db have 2 GB each;
- logs: 5 GB in rotated files full of lines, as with a large `max_size_mb` and `backup_count`;
- sessions: 50,000 sessions, each with a row in state.db and a file;
- files: 200,000 files in skills and in the media of platforms;
- processes: the small home with its gateway running beside 500 other processes, and beside as many
  that have 5,000 open sockets; compared with the same home and gateway without them.

All run in turn. Bars: the CPU time of each, with all children, is at most 1.3 times that of the
small home; with 5,000 sockets, of which the kernel lists each one twice, at most 2 times. Needs
10 GB of disk space for some minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import used_home
from benchmarks.timing import Cost, environment, in_turn, load, middle
from tests.helpers.real.gateways import gateway

RELEASE = "0.19.0"
BAR, SOCKETS_BAR = 1.3, 2.0
MEGABYTE = 1024**2
DATABASE = 2048 * MEGABYTE
LOG_PART, LOG_PARTS = 50 * MEGABYTE, 34
"""Three logs of that many parts are 5 GB."""
SESSIONS, FILES = 50_000, 200_000
PROCESSES, SOCKETS = 500, 5000
EACH = 250
"""Sockets per process, with both ends of each connection counted."""
ROUNDS = 3
"""How often the crowd comes and goes."""
TOOL = [sys.executable, "-m", "hermes_doctor", "check", "--home"]
HOLDER = f"""
import socket, sys
listening = socket.create_server(("127.0.0.1", 0), backlog={EACH})
ends = []
for _ in range({EACH} // 2):
    ends.append(socket.create_connection(listening.getsockname()))
    ends.append(listening.accept()[0])
print("ready", flush=True)
sys.stdin.read()
"""
SLEEPER = ["sh", "-c", "echo ready; read line"]


def databases(home: Path) -> None:
    """Fill state.db with sessions that have long instructions, and kanban.db with long tasks."""
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdefghijklmnop", k=6)) for _ in range(4000)]
    text = " ".join(chance.choices(words, k=9000))
    statements = {
        "state.db": "INSERT INTO sessions (id, source, system_prompt, started_at) "
        "VALUES (:id, 'cli', :text, 1.0)",
        "kanban.db": "INSERT INTO tasks (id, title, body, status, created_at) "
        "VALUES (:id, :id, :text, 'done', 1)",
    }
    for name, statement in statements.items():
        with connected(home / name) as db:
            numbers = itertools.count(1)
            while (home / name).stat().st_size < DATABASE:
                db.execute("BEGIN")
                for number in itertools.islice(numbers, 1000):
                    db.execute(statement, {"id": f"filling-{number}", "text": f"{number} {text}"})
                db.execute("COMMIT")
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextlib.contextmanager
def connected(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database to fill it quickly."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous=OFF")
        yield db


def logs(home: Path) -> None:
    """Write older parts behind each log, a part for each day."""
    with (home / "config.yaml").open("a") as config:
        size = LOG_PART // MEGABYTE
        config.write(f"logging:\n  max_size_mb: {size}\n  backup_count: {LOG_PARTS}\n")
    for log in used_home.ROTATED_AT:
        newest = home / "logs" / log
        lines = newest.read_bytes()
        day = datetime.fromtimestamp(newest.stat().st_mtime, UTC)
        stamp = f"{day:%Y-%m-%d}".encode()
        lines = b"".join(line for line in lines.splitlines(True) if line.startswith(stamp))
        lines *= LOG_PART // len(lines)
        for number in range(1, LOG_PARTS + 1):
            then = newest.stat().st_mtime - number * 86400
            path = newest.with_name(f"{log}.{number}")
            before = f"{datetime.fromtimestamp(then, UTC):%Y-%m-%d}".encode()
            path.write_bytes(lines.replace(stamp, before))
            os.utime(path, (then, then))


def sessions(home: Path) -> None:
    """Add a row and a transcript for each session of a year."""
    now, apart = time.time(), 365 * 86400 / SESSIONS
    line = b'{"role": "session_meta", "model": "gpt-4o"}\n{"role": "user", "content": "hello"}\n'
    with connected(home / "state.db") as db:
        db.execute("BEGIN")
        for number in range(SESSIONS):
            at = now - 3600 - number * apart
            name = f"{datetime.fromtimestamp(at, UTC):%Y%m%d_%H%M%S}_{number:08x}"
            db.execute(
                "INSERT INTO sessions (id, source, model, started_at, message_count) "
                "VALUES (?, 'cli', 'gpt-4o', ?, 2)",
                (name, at),
            )
            db.execute(
                "INSERT INTO messages (session_id, role, content, timestamp) "
                "VALUES (?, 'user', 'hello', ?)",
                (name, at),
            )
            path = home / "sessions" / f"{name}.jsonl"
            path.write_bytes(line)
            os.utime(path, (at, at))
        db.execute("COMMIT")


def files(home: Path) -> None:
    """Add small files in folders of two hundred."""
    for number in range(FILES):
        top = ("skills/made", "whatsapp/media")[number % 2]
        folder = home / top / f"{number // 400:03}"
        if number % 400 < 2:
            folder.mkdir(parents=True)
        (folder / f"{number}.md").write_bytes(b"a note\n")


@contextlib.contextmanager
def crowd(sockets: int) -> Iterator[None]:
    """Start all processes of the crowd; they stop when their input is closed."""
    holders = sockets // EACH
    commands = [[sys.executable, "-I", "-c", HOLDER]] * holders
    commands += [SLEEPER] * (PROCESSES - holders)
    running: list[subprocess.Popen[bytes]] = []
    try:
        running.extend(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for command in commands
        )
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        yield
    finally:
        for process in running:
            assert process.stdin is not None
            process.stdin.close()
        for process in running:
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def show(name: str, cost: Cost, base: Cost, bar: float = BAR) -> bool:
    """Print one line of the table, and return whether the bar is missed."""
    ratio = cost.cpu / base.cpu
    print(
        f"  {name:<36} {cost.wall * 1000:>6.0f} ms {cost.cpu * 1000:>6.0f} ms "
        f"± {cost.spread * 500:>3.0f} {ratio:>6.2f}x{'  MISSED' if ratio > bar else ''}",
        flush=True,
    )
    return ratio > bar


LARGE: dict[str, tuple[str, Callable[[Path], None]]] = {
    "databases": ("two databases of 2 GB", databases),
    "logs": ("5 GB of logs", logs),
    "sessions": (f"{SESSIONS} sessions", sessions),
    "files": (f"{FILES} files", files),
}


def compare(folder: Path, small: Path, names: list[str], runs: int) -> list[bool]:
    """Measure the large homes and the small one in turn; return which bars are missed."""
    homes = [small]
    for name in names:
        shutil.copytree(small, folder / name / "home")
        homes.append(folder / name / "home")
        LARGE[name][1](homes[-1])
    os.sync()
    base, *costs = in_turn(
        [[*TOOL, str(home)] for home in homes], runs, environment(HOME=str(folder))
    )
    show("small home", base, base)
    return [show(LARGE[name][0], cost, base) for name, cost in zip(names, costs, strict=True)]


def crowded(folder: Path, small: Path, runs: int) -> list[bool]:
    """Measure beside a gateway, while two crowds come and go; return which bars are missed."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65536), most))
    command, environ = [[*TOOL, str(small)]], environment(HOME=str(folder))
    found: list[list[Cost]] = [[], [], []]
    with gateway(RELEASE, small):
        for _ in range(ROUNDS):
            for costs, sockets in zip(found, (None, 0, SOCKETS), strict=True):
                with contextlib.nullcontext() if sockets is None else crowd(sockets):
                    costs += in_turn(command, max(1, runs // ROUNDS), environ)
    base, alone, talking = map(typical, found)
    show("small home beside its gateway", base, base)
    return [
        show(f"and {PROCESSES} processes", alone, base),
        show(f"and {PROCESSES} with {SOCKETS} sockets", talking, base, SOCKETS_BAR),
    ]


def typical(costs: list[Cost]) -> Cost:
    """Return the medians of several measurements."""
    cpu, spread = middle([cost.cpu for cost in costs])
    return Cost(middle([cost.wall for cost in costs])[0], cpu, spread)


def main() -> int:
    """Measure, print the table, and return 1 if a bar is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--only", choices=[*LARGE, "processes"])
    asked = parser.parse_args()
    wanted = [asked.only] if asked.only else [*LARGE, "processes"]
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o700)
    missed: list[bool] = []
    try:
        small = used_home.make(folder / "small" / "home", RELEASE)
        (small / "sessions").mkdir(exist_ok=True)
        print(load())
        print(f"  {'':<36} {'wall':>9} {'cpu':>9} {'':>5} {'ratio':>7}")
        if large := [name for name in wanted if name in LARGE]:
            missed += compare(folder, small, large, asked.runs)
        if "processes" in wanted:
            missed += crowded(folder, small, asked.runs)
    finally:
        shutil.rmtree(folder)
    print(f"bars: at most {BAR:g} times the small home; with sockets {SOCKETS_BAR:g} times")
    return int(any(missed))


if __name__ == "__main__":
    sys.exit(main())
