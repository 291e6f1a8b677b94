"""Measure the memory of every command on homes in which one thing is huge, damaged or both.

    python -m benchmarks.huge_homes [--only NAME ...] [--commands WORD ...] [--folder DIR]

Starts each command and samples it and all its child processes, about every 20 ms:

- own: the most memory that one of the processes had without the files that it has mapped, whose
  pages the kernel can take back at any time: the limit is about this;
- one: the same with those files (RSS);
- all: the most that all of them together had, pages that they share counted once (PSS).

Bars: no process has more than 400 MB, `check` ends within 15 seconds (more on a busy machine), and
no command ends by a signal, with a traceback, with an unknown exit code or without a word. Needs
10 GB of disk space.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.memory import Peak, sampled
from benchmarks.timing import environment, load
from hermes_doctor.core.system import limits
from tests.helpers import support

MEGABYTE = 1024**2
MOST = 400 * MEGABYTE
SECONDS = 15
LINE = (
    "2026-11-19 04:13:{second:02} ERROR gateway.run: [{n}] code 100016, invalid appid or secret\n"
)
LOOKS = (
    "check",
    "check --json --record",
    "config",
    "timeline",
    "history",
    "rollback",
    "fix",
    "check --deep",
    "switch-provider deepseek --model deepseek-chat --no-test",
    "watch --once",
    "learn",
)
CHANGES = (
    "backup create",
    "backup list",
    "backup verify",
    "backup verify --deep",
    "backup restore NEWEST --yes",
    "undo --yes",
    "fix --deep --apply --yes",
    "undo --yes",
)


def large(home: Path, megabytes: int = 2048) -> None:
    """A state.db of 2 GB."""
    path = home / "state.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous=OFF")
        words = " ".join(
            random.Random(7).choices(["alpha", "beta", "gamma", "delta", "epsilon"], k=12_000)
        )
        numbers = itertools.count(1)
        while path.stat().st_size < megabytes * MEGABYTE:
            db.execute("BEGIN")
            support.say(db, "one more message")
            for number in itertools.islice(numbers, 400):
                db.execute(
                    "INSERT INTO sessions (id, source, system_prompt, started_at) "
                    "VALUES (?, 'cli', ?, 1)",
                    (f"filling-{number}", f"{number} {words}"),
                )
            db.execute("COMMIT")


def damaged(home: Path) -> None:
    """A state.db of 2 GB in which some pages are overwritten."""
    large(home)
    size = (home / "state.db").stat().st_size
    for part in range(1, 9):
        support.clobber(home / "state.db", b"\x5a" * 4096, size // 4096 * part // 9 * 4096)


def truncated(home: Path) -> None:
    """A state.db of 2 GB of which the second half is gone."""
    large(home)
    os.truncate(home / "state.db", 1024 * MEGABYTE)


def sparse(home: Path) -> None:
    """A state.db with 20 GB of nothing behind its end, and an empty one of 20 GB."""
    os.truncate(home / "state.db", 20_000 * MEGABYTE)
    (home / "kanban.db").unlink()
    (home / "kanban.db").touch()
    os.truncate(home / "kanban.db", 20_000 * MEGABYTE)


def wide_row(home: Path) -> None:
    """Two rows of 300 MB each, one in a column that is not searched."""
    with contextlib.closing(sqlite3.connect(home / "state.db")) as db, db:
        _add_wide_rows(db)


def damaged_wide_row(home: Path) -> None:
    """Two rows of 300 MB each, and damaged pages."""
    with contextlib.closing(sqlite3.connect(home / "state.db")) as db, db:
        _add_wide_rows(db)
    for part in range(1, 4):
        support.clobber(home / "state.db", b"\x5a" * 4096, 4096 * (2 * part))


def _add_wide_rows(db: sqlite3.Connection) -> None:
    db.execute(
        "INSERT INTO sessions (id, source, model_config, started_at) "
        "VALUES ('blob', 'cli', zeroblob(?), 1)",
        (300 * MEGABYTE,),
    )
    db.execute(
        "INSERT INTO sessions (id, source, system_prompt, started_at) VALUES ('wide', 'cli', ?, 1)",
        ("word " * (60 * MEGABYTE),),
    )


def wal(home: Path) -> None:
    """A write-ahead log of 1 GB whose writer was killed."""
    script = (
        "import os, signal, sqlite3, sys\n"
        "db = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "db.execute('PRAGMA journal_mode=WAL')\n"
        "db.execute('PRAGMA wal_autocheckpoint=0')\n"
        "db.execute('PRAGMA synchronous=OFF')\n"
        "for n in range(250):\n"
        "    db.execute('BEGIN')\n"
        "    for m in range(1000):\n"
        '        db.execute("INSERT INTO sessions (id, source, system_prompt, started_at)'
        " VALUES (?, 'cli', ?, 1)\", (f'w{n}-{m}', 'x' * 3900))\n"
        "    db.execute('COMMIT')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(home / "state.db")], check=False)


def schema(home: Path) -> None:
    """A state.db with 20,000 more tables."""
    with contextlib.closing(sqlite3.connect(home / "state.db", isolation_level=None)) as db:
        db.execute("PRAGMA synchronous=OFF")
        db.execute("BEGIN")
        for number in range(20_000):
            db.execute(f"CREATE TABLE other_{number} (a INTEGER PRIMARY KEY, b TEXT, c, d, e)")
        db.execute("COMMIT")


def long_schema(home: Path) -> None:
    """A state.db with views whose text is 200 MB."""
    with contextlib.closing(sqlite3.connect(home / "state.db", isolation_level=None)) as db:
        for number in range(250):
            db.execute(f"CREATE VIEW v{number} AS SELECT '{'x' * 800_000}'")


def log(home: Path) -> None:
    """A log of 3 GB, one that is a single line of 1 GB, and older parts of 1 GB."""
    lines = "".join(LINE.format(second=n % 60, n=n) for n in range(20_000)).encode()
    for name, times in (("agent.log", 3000), ("errors.log.1", 1000)):
        with (home / "logs" / name).open("wb") as file:
            while file.tell() < times * MEGABYTE:
                file.write(lines)
    with (home / "logs" / "gateway.log").open("wb") as file:
        file.write(lines)
        for _ in range(1000):
            file.write(b"x" * MEGABYTE)


def auth(home: Path) -> None:
    """An auth.json of 200 MB."""
    pool = [{"id": f"key-{n}", "token": "t" * 150} for n in range(1_000_000)]
    (home / "auth.json").write_text(
        json.dumps({"providers": {}, "credential_pool": {"openrouter": pool}})
    )


def jobs(home: Path) -> None:
    """A cron/jobs.json of 100 MB."""
    job = {"schedule": {"kind": "cron", "expr": "* * * * *"}, "prompt": "p" * 120, "enabled": True}
    text = json.dumps({"jobs": [{"id": f"job-{n}", **job} for n in range(450_000)]})
    support.put(home / "cron" / "jobs.json", text)


def sessions(home: Path) -> None:
    """200,000 files of sessions in one folder, and a list of them."""
    folder = home / "sessions"
    folder.mkdir()
    for number in range(200_000):
        (folder / f"session_{number:08}.json").write_bytes(b'{"messages": [{"role": "user"}]}')
    listed = {
        f"k{n}": {"session_id": f"{n:08}", "updated_at": "2026-11-19"} for n in range(200_000)
    }
    (folder / "sessions.json").write_text(json.dumps(listed))


def settings(home: Path) -> None:
    """A config.yaml and a .env of 100 MB, and a gateway_state.json of 300 MB."""
    (home / "config.yaml").write_text(
        support.CONFIG + "x:\n" + "".join(f"  k{n}: {'v' * 60}\n" for n in range(1_400_000))
    )
    (home / ".env").write_text(
        support.ENV + "".join(f"KEY_{n}={'v' * 80}\n" for n in range(1_000_000))
    )
    state = {"gateway_state": "running", "pid": 4, "platforms": {}, "x": ["y" * 90] * 3_000_000}
    (home / "gateway_state.json").write_text(json.dumps(state))


HOMES: dict[str, Callable[[Path], None]] = {
    one.__name__: one
    for one in (
        large,
        damaged,
        truncated,
        sparse,
        wide_row,
        damaged_wide_row,
        wal,
        schema,
        long_schema,
        log,
        auth,
        jobs,
        sessions,
        settings,
    )
}


def run(home: Path, words: str) -> tuple[Peak, str, str]:
    """Measure a command on a home; return also what it wrote to stdout and stderr."""
    command = [sys.executable, "-m", "hermes_doctor", *words.split(), "--home", str(home)]
    environ = environment(HOME=str(home.parent / "user"), HERMES_DOCTOR_STEADY="1")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        peak = sampled(command, env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read(64 * MEGABYTE).decode(errors="replace"))
    return peak, said[0], said[1]


def wrong(words: str, peak: Peak, out: str, err: str) -> Iterator[str]:
    """Say which bars a command has missed."""
    if peak.own > MOST:
        yield "too much memory"
    limited = words.startswith("check") and "--deep" not in words
    if limited and peak.seconds > SECONDS * limits.patience():
        yield "too slow"
    if peak.code < 0:
        yield f"ended by {signal.Signals(-peak.code).name}"
    elif peak.code not in (0, 1, 2):
        yield f"exit code {peak.code}"
    for sign in ("Traceback", "This is a bug"):
        if sign in out + err:
            yield sign
    if not (out + err).strip():
        yield "no word"


def newest(home: Path) -> str:
    """Return the id of the newest backup."""
    found = [one for one in os.listdir(home / "backups" / "doctor") if one[:1].isdigit()]
    return max(found, default="none")


def _say(name: str, home: Path, words: str, log: Path | None) -> bool:
    """Measure a command and print a line; return whether it missed a bar."""
    if "NEWEST" in words:
        words = words.replace("NEWEST", newest(home))
    limits.patience.cache_clear()
    peak, out, err = run(home, words)
    bars = ", ".join(wrong(words, peak, out, err))
    own = f"own {peak.own >> 20:4} MB"
    print(f"{name:16} {words[:40]:40} {own}, {peak} exit {peak.code} {bars}", flush=True)
    if log:
        with log.open("a") as file:
            file.write(f"=== {name}: {words}: {peak}\n{out[-6000:]}\n--- {err[-3000:]}\n")
    return bool(bars)


def main() -> int:
    """Measure, print, and fail when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", nargs="+", choices=HOMES, default=list(HOMES))
    parser.add_argument("--commands", nargs="+", default=[])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--words", type=Path, help="Keep what the commands wrote in this file.")
    options = parser.parse_args()
    print(load())
    missed = False
    for name in options.only:
        folder = Path(tempfile.mkdtemp(prefix="huge-", dir=options.folder))
        try:
            home = support.healthy(folder / "home")
            (folder / "user").mkdir()
            HOMES[name](home)
            for words in options.commands or (*LOOKS, *CHANGES):
                missed |= _say(name, home, words, options.words)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
