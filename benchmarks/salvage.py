"""Measure how many rows each repair method saves for every class of damage.

    python -m benchmarks.salvage [--messages 6000] [--only WORDS] [--results FILE] [--shell PATH]
    python -m benchmarks.salvage --write docs/salvage.md --results FILE

The database is written by a real release's own code and kept in a cache. Each class is run with
Hermes itself (opening the file, and its own repair where that fails), with the sqlite3 shell's
`.dump` and `.recover` where the shell can (`python -m tools.sqlite_shell` makes one that can),
and with the salvage. A row counts as exact when every column has the bytes it had; one that is
only in `lost_and_found` is not saved. Results are appended, one line per class, so that a stopped
run can be continued.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.faults import FAULTS, LIVE, damage
from hermes_doctor.hermes.knowledge import atlas
from tools import releases

RELEASE = "0.19.0"
TABLES = ("sessions", "messages")
LONGEST = 1800
"""Maximum seconds for one method."""
COMMITTED = "sed 's/^ROLLBACK; -- due to errors$/COMMIT;/'"
"""A dump that finds damage ends with a rollback; this commits the rows instead."""
SMALL = {
    "kanban": ("tasks", "task_comments", "task_events"),
    "response_store": ("responses", "conversations"),
}
SMALL_FAULTS = (
    "magic overwritten", "header zeroed", "page 1 zeroed", "1 page zeroed", "10 pages zeroed",
    "100 pages zeroed", "50 bits flipped", "cut to 50 %", "cut to 90 %", "page size doubled",
    "page size invalid", "end overwritten by a log",
)  # fmt: skip
HERMES = """
import sys
from pathlib import Path
import hermes_state
path = Path(sys.argv[1])
try:
    hermes_state.SessionDB(path).close()
except Exception:
    repair = getattr(hermes_state, "repair_state_db_schema", None)
    if repair:
        repair(path, backup=False)
    hermes_state.SessionDB(path).close()
"""


@dataclass
class Score:
    """The result of one method on one class: exact, changed and extra rows by table."""

    exact: dict[str, int] = field(default_factory=dict)
    partial: dict[str, int] = field(default_factory=dict)
    extra: dict[str, int] = field(default_factory=dict)
    multimodal: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    megabytes: int = 0
    failed: str = ""


Rows = dict[str, dict[Any, int]]


def fixture(messages: int) -> Path:
    """Return the databases, created once and kept outside the repository."""
    folder = releases.cache().parent / "fixtures" / f"salvage-{messages}-{RELEASE}"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        script = Path(__file__).with_name("salvage_fixture.py")
        command = [str(releases.python_of(RELEASE)), str(script), str(folder), str(messages)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (folder / "complete").touch()
    return folder


def read(path: Path, tables: tuple[str, ...] = TABLES) -> Rows:
    """Return a hash of each row by table and key, without unreadable rows."""
    found: Rows = {table: {} for table in tables}
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.text_factory = bytes
        for table in tables:
            with contextlib.suppress(sqlite3.Error):
                for key, value in _rows(database, table):
                    found[table][key] = value
    return found


def _rows(database: sqlite3.Connection, table: str) -> Iterator[tuple[Any, int]]:
    known = database.execute(f"PRAGMA table_info({table})").fetchall()
    if not known:
        return
    names = sorted(row[1].decode() for row in known)
    key = next((row[1].decode() for row in known if row[5]), "rowid")
    for row in database.execute(f"SELECT {key}, {', '.join(names)} FROM {table}"):
        yield row[0], hash(row[1:])


def multimodal(path: Path) -> dict[Any, int]:
    """Return the messages whose text starts with a zero byte, which text dumps truncate."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.text_factory = bytes
        ids = {
            row[0]
            for row in database.execute(
                "SELECT id FROM messages WHERE hex(substr(CAST(content AS BLOB), 1, 1)) = '00'"
            )
        }
    return {key: value for key, value in read(path)["messages"].items() if key in ids}


def compare(truth: Rows, got: Rows, score: Score) -> None:
    """Count the saved rows."""
    for table, rows in truth.items():
        here = got.get(table, {})
        score.exact[table] = sum(here.get(key) == value for key, value in rows.items())
        score.partial[table] = sum(key in here for key in rows) - score.exact[table]
        score.extra[table] = sum(key not in rows for key in here)


class Bench:
    """One run over the classes of damage."""

    def __init__(self, folder: Path, work: Path, shell: str) -> None:
        self.folder = folder
        self.work = work
        self.shell = shell
        self.recover = _can_recover(shell, work)
        self.version = _output([shell, "--version"]).partition(" ")[0]
        self._truth: dict[bool, tuple[Rows, dict[Any, int]]] = {}

    def truth(self, live: bool) -> tuple[Rows, dict[Any, int]]:
        """Return the rows of the intact database."""
        if live not in self._truth:
            path = self.folder / "state.db"
            if live:
                path = self.work / "truth.db"
                _copy(self.folder / "live.db", path)
            self._truth[live] = read(path), multimodal(path)
        return self._truth[live]

    def run(self, name: str) -> dict[str, Any]:
        """Run all methods on one class."""
        truth, special = self.truth(name in LIVE)
        sick = damage(name, self.folder / "state.db", self.work / "sick.db")
        scores = {}
        for method in ("hermes", "dump", "recover", "salvage"):
            if method == "recover" and not self.recover:
                continue
            score = Score()
            result = getattr(self, f"_{method}")(sick, score)
            got = read(result) if result is not None and result.exists() else {}
            compare(truth, got, score)
            messages = got.get("messages", {})
            score.multimodal = sum(messages.get(key) == value for key, value in special.items())
            scores[method] = asdict(score)
        return {
            "fault": name,
            "there": {table: len(rows) for table, rows in truth.items()},
            "multimodal": len(special),
            "megabytes": sick.stat().st_size >> 20,
            "shell": self.version,
            "scores": scores,
        }

    def _hermes(self, sick: Path, score: Score) -> Path:
        place = self.work / "hermes.db"
        _copy(sick, place)
        environ = {**os.environ, "HERMES_HOME": str(self.work / "home")}
        (self.work / "home").mkdir(exist_ok=True)
        command = [str(releases.python_of(RELEASE)), "-c", HERMES, str(place)]
        _timed(command, score, env=environ, cwd=self.work)  # away from our own `tools`
        return place

    def _dump(self, sick: Path, score: Score) -> Path:
        return self._shell(sick, score, ".dump")

    def _recover(self, sick: Path, score: Score) -> Path:
        return self._shell(sick, score, ".recover")

    def _shell(self, sick: Path, score: Score, command: str) -> Path:
        place, out = self.work / "shell.db", self.work / "shell-out.db"
        _copy(sick, place)
        _remove(out)
        line = f"{self.shell} {place} {command} | {COMMITTED} | {self.shell} {out}"
        _timed(["sh", "-c", line], score)
        return out

    def _salvage(self, sick: Path, score: Score) -> Path:
        out = self.work / "out.db"
        _remove(out)
        command = [sys.executable, "-m", "benchmarks.salvage", "--one", str(sick), str(out)]
        told = _timed(command, score)
        if told:
            facts = json.loads(told)
            score.seconds, score.cpu = facts["seconds"], facts["cpu"]
            score.megabytes = facts["megabytes"]
        return out


def one(source: str, target: str) -> None:
    """Run a single salvage, and print its time and memory."""
    from hermes_doctor.sqlite.salvage.run import salvage

    blueprint = atlas.blueprint("state.db", RELEASE)
    assert blueprint
    start = time.perf_counter()
    account = salvage(Path(source), Path(target), blueprint)
    facts = {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time(),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        "sentences": account.sentences,
    }
    print(json.dumps(facts))


def small(folder: Path, work: Path) -> list[dict[str, Any]]:
    """Salvage the other databases."""
    from hermes_doctor.sqlite.salvage.run import salvage

    results = []
    for database, tables in SMALL.items():
        blueprint = atlas.blueprint(f"{database}.db", RELEASE)
        assert blueprint
        truth = read(folder / f"{database}.db", tables)
        for name in SMALL_FAULTS:
            sick = damage(name, folder / f"{database}.db", work / "small.db")
            out = work / "small-out.db"
            _remove(out)
            salvage(sick, out, blueprint)
            score = Score()
            compare(truth, read(out, tables), score)
            there = {table: len(rows) for table, rows in truth.items()}
            results.append(
                {"database": database, "fault": name, "there": there, "score": asdict(score)}
            )
    return results


def _timed(
    command: list[str], score: Score, env: dict[str, str] | None = None, cwd: Path | None = None
) -> str:
    start, used = time.perf_counter(), _used()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LONGEST, env=env, cwd=cwd
        )
        score.failed = done.stderr.strip()[-200:] if done.returncode else ""
        return done.stdout
    except subprocess.TimeoutExpired:
        score.failed = f"more than {LONGEST} s"
        return ""
    finally:
        score.seconds = time.perf_counter() - start
        score.cpu = _used() - used


def _used() -> float:
    """Return the CPU seconds of all commands so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _copy(source: Path, target: Path) -> None:
    _remove(target)
    for suffix in ("", "-wal", "-journal"):
        if Path(f"{source}{suffix}").exists():
            shutil.copyfile(f"{source}{suffix}", f"{target}{suffix}")


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _can_recover(shell: str, work: Path) -> bool:
    """Return whether a shell's `.recover` returns the rows of an intact database."""
    probe = work / "probe.db"
    _remove(probe)
    with contextlib.closing(sqlite3.connect(probe)) as database, database:
        database.execute("CREATE TABLE probe (a)")
        database.execute("INSERT INTO probe VALUES ('seen')")
    return "seen" in _output([shell, str(probe), ".recover"])


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout
    except FileNotFoundError:
        return ""


def main() -> None:
    """Run the benchmark, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--messages", type=int, default=6000)
    parser.add_argument("--only", default="")
    parser.add_argument("--results", type=Path, default=Path("salvage-results.jsonl"))
    parser.add_argument("--shell", default="sqlite3")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--one", nargs=2)
    options = parser.parse_args()
    if options.one:
        one(*options.one)
        return
    if options.write:
        from benchmarks.salvage_page import page

        options.write.write_text(page(options.results))
        return
    folder = fixture(options.messages)
    with tempfile.TemporaryDirectory(prefix="salvage-work-", dir=folder.parent) as work:
        run(folder, Path(work), options.shell, options.only, options.results)


def run(folder: Path, work: Path, shell: str, only: str, results: Path) -> None:
    """Run every class that the results lack."""
    done = set()
    if results.exists():
        done = {json.loads(line)["fault"] for line in results.read_text().splitlines()}
    bench = Bench(folder, work, shell)
    for name in FAULTS:
        if name in done or only not in name:
            continue
        result = bench.run(name)
        _append(results, result)
        ours = result["scores"]["salvage"]
        print(
            f"{name}: {ours['exact']} of {result['there']} in {ours['seconds']:.1f} s", flush=True
        )
    if "other databases" not in done and not only:
        _append(results, {"fault": "other databases", "small": small(folder, work)})


def _append(results: Path, line: dict[str, Any]) -> None:
    with results.open("a") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
