"""Compare how long `check --deep` and the sqlite3 shell take to examine the same databases.

    python -m benchmarks.databases [--runs 5]

Equal work means the same answer from the same files. The question is that of the check
`database-pages`: is every page, every index and every search index of every database in the home
intact? So only this check runs (`--only database-pages`), and the shell gets, for every database,
`PRAGMA integrity_check` and for each search index the two counts that compare it with the messages:
rows that are only in one of them. `hermes doctor` cannot be compared: it opens state.db and counts
its sessions, but it examines no page.

What differs: the shell starts at once and trusts the files to be still, where `check` loads its
modules, watches for writers and reads the log and the freelist by itself; that is the price of the
tool and counts. How quickly SQLite examines a file depends on its content, so two are measured: one
of 2 GB with mostly long instructions, which are read quickly, and one of 1.1 GB with a quarter of a
million messages, their indexes and their search index.

Bar: `check --deep` needs at most 1.25 times the CPU time of the shell, with all children. How
`check` itself scales with the size of a database is measured by `benchmarks.scale`.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from benchmarks import history, scale, used_home
from benchmarks.timing import Cost, environment, in_turn, load

BAR = 1.25
TIMES = 4
"""Multiples of 280 MB of messages."""
DEEP = [sys.executable, "-m", "hermes_doctor", "check", "--deep", "--only", "database-pages"]
COMPARED = (
    "SELECT count(*) FROM {one} NOT INDEXED WHERE id NOT IN (SELECT id FROM {other} NOT INDEXED)"
)


def questions(database: Path) -> str:
    """Return what the shell is asked about a database."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro&immutable=1", uri=True)) as db:
        named = "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%fts5%'"
        indexes = [f'"{name}_docsize"' for (name,) in db.execute(named)]
    asked = ["PRAGMA integrity_check(100);"]
    for index in indexes:
        asked.append(COMPARED.format(one="messages", other=index) + ";")
        asked.append(COMPARED.format(one=index, other="messages") + ";")
    return " ".join(asked)


def shell_command(shell: str, home: Path) -> list[str]:
    """Return the command that examines all databases of a home with the shell."""
    script: list[str] = []
    words: list[str] = []
    for database in sorted(home.glob("*.db")):
        script.append(f'"$0" "${len(words) + 1}" "${len(words) + 2}"')
        words += [f"file:{database}?mode=ro&immutable=1", questions(database)]
    return ["sh", "-c", " && ".join(script), shell, *words]


def compared(name: str, home: Path, shell: str, runs: int) -> float:
    """Return how many times more CPU time `check --deep` takes than the shell."""
    environ = environment(HOME=tempfile.gettempdir())
    commands = [[*DEEP, "--home", str(home)], shell_command(shell, home)]
    ours, theirs = in_turn(commands, runs, environ)
    show(f"check --deep, {name}", ours, theirs)
    show(f"sqlite3 shell, {name}", theirs, theirs)
    return ours.cpu / theirs.cpu


def show(name: str, cost: Cost, least: Cost) -> None:
    """Print one line of the table."""
    print(
        f"  {name:<28} {cost.wall * 1000:>7.0f} ms {cost.cpu * 1000:>7.0f} ms "
        f"± {cost.spread * 500:>3.0f} {cost.cpu / least.cpu:>6.2f}x",
        flush=True,
    )


def main() -> int:
    """Measure, print the table, and return 1 if the bar is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    shell = shutil.which("sqlite3")
    if not shell:
        print("there is no sqlite3 shell to compare with")
        return 0
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o700)
    try:
        large = used_home.make(folder / "home", scale.RELEASE)
        scale.databases(large)
        print(f"{load()}; CPU time of all processes, median ± half of the middle half")
        print(f"  {'':<28} {'wall':>10} {'cpu':>10} {'':>5} {'ratio':>7}")
        ratios = [compared("2 x 2 GB", large, shell, runs)]
        ratios.append(compared("messages", history.home(TIMES), shell, runs))
    finally:
        shutil.rmtree(folder)
    print(f"worst: {max(ratios):.2f} times the sqlite3 shell (bar: at most {BAR:g})")
    return int(max(ratios) > BAR)


if __name__ == "__main__":
    sys.exit(main())
