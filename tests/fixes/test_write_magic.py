"""write-magic: the sixteen bytes, and not one row lost."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import NoReturn

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.diagnosis.examination import report
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.probes.databases_view import DatabasesView
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.repair.transaction import plan
from tests.helpers import damage, fix_cycle, support
from tests.helpers.fix_contract import Planted


def rows(path: Path) -> list[tuple[str]]:
    """What the database holds."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return db.execute("SELECT content FROM messages ORDER BY id").fetchall()


@pytest.mark.sampled
@pytest.mark.parametrize("wrong", [b"\0" * 16, b"XXXX", b"\x17\x03\x03\x00\x1a", b"Sqlite"])
def test_cures_and_undoes(home: Path, wrong: bytes) -> None:
    """The very bytes of before are back; twice equals once; undo gives the damage back."""
    healthy = (home / "state.db").read_bytes()
    support.clobber(home / "state.db", wrong)
    sick = support.contents(home)

    done = support.doctor("fix", "DB-NOTADB", "--apply", "--json", "--home", home)

    assert (done.code, done.codes) == (0, [])
    assert (home / "state.db").read_bytes() == healthy
    cured = support.contents(home)
    again = support.doctor("fix", "--apply", "--json", "--home", home)
    assert (again.code, again.json["repair"]["runs"]) == (0, [])
    assert support.contents(home) == cured
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick


def test_damage_further_on(home: Path) -> None:
    """A copy that SQLite does not find sound is not swapped in; nothing changes unasked, exit 1."""
    path = home / "state.db"
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        support.say(db, *["x" * 900] * 50)
    support.clobber(path, b"\xff" * 2000, path.stat().st_size - 6000)
    support.clobber(path)
    sick = support.contents(home)

    done = support.doctor("fix", "--apply", "--json", "--home", home)

    assert done.code == 1
    assert support.contents(home) == sick
    assert done.codes == ["DB-NOTADB"]
    [run] = done.json["repair"]["runs"]
    [item] = run["items"]
    assert (item["fix"], item["outcome"]) == ("write-magic", "not-enough")
    assert item["reason"].endswith("The next fix is salvage-rows.")


def test_it_climbs(home: Path) -> None:
    """Magic bytes, a wrong header, then the rows: the plan says so, and each rung is tried."""
    path = fix_cycle.history(home / "state.db")
    kept = fix_cycle.messages(path)
    damage.zero(path, damage.leaves(path, "messages")[1])
    damage.write(path, bytes(16), 0)

    shown = support.doctor("fix", "DB-NOTADB", "--home", home)
    cured = fix_cycle.cure(home, "DB-NOTADB", "write-magic", then="salvage-rows")

    assert "if that is not enough: salvage-rows, which asks first" in shown.out
    assert "restoring its first 16 bytes: " in cured.before[0]
    assert "rebuilding its header: " in cured.before[0]
    found = fix_cycle.messages(path)
    assert len(set(found) & set(kept)) >= 0.9 * len(kept)
    cured.undo()


def test_the_header_too(home: Path) -> None:
    """Magic bytes and the list of free pages: the header is enough, and no row is touched."""
    path = fix_cycle.history(home / "state.db")
    kept = fix_cycle.messages(path)
    damage.freelist_lost(path)
    damage.write(path, bytes(16), 0)

    cured = fix_cycle.cure(home, "DB-NOTADB", "write-magic")

    assert cured.notes[-1] == "The header was written again."
    assert fix_cycle.messages(path) == kept
    cured.undo()


def test_one_bad_database_does_not_keep_another_from_its_fix(home: Path) -> None:
    """A fix that is refused for one file leaves the others of the same run their cure."""
    good, bad = home / "state.db", home / "kanban.db"
    healthy = good.read_bytes()
    support.clobber(bad, b"\xff" * 200, 4096)
    support.clobber(bad)
    support.clobber(good)

    done = support.doctor("fix", "--apply", "--json", "--home", home)

    assert done.code == 1
    assert good.read_bytes() == healthy


def test_log_beside_it(home: Path) -> None:
    """Rows that are only in the write-ahead log are in the repaired file."""
    path = home / "state.db"
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("PRAGMA wal_autocheckpoint=0")
    support.say(writer, "in the log")
    writer.commit()
    saved = {suffix: (home / f"state.db{suffix}").read_bytes() for suffix in ("", "-wal")}
    writer.close()
    for suffix, data in saved.items():
        support.put(home / f"state.db{suffix}", data)
    (home / "state.db-shm").unlink(missing_ok=True)
    support.clobber(path)
    sick = support.contents(home)

    assert support.doctor("fix", "--apply", "--home", home).code == 0

    assert not (home / "state.db-wal").exists()
    assert rows(path)[-1] == ("in the log",)
    (home / "state.db-shm").unlink(missing_ok=True)
    (home / "state.db-wal").unlink(missing_ok=True)
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick


def test_in_use(home: Path) -> None:
    """A database that somebody has open is not swapped; the message names the process."""
    support.clobber(home / "state.db")
    sick = support.contents(home)
    with (home / "state.db").open("rb"):
        done = support.doctor("fix", "--apply", "--home", home)

    assert done.code == 2
    assert "in use by process" in done.err
    assert support.contents(home) == sick


def test_in_use_leaves_the_other_fixes(home: Path) -> None:
    """A database in use keeps only its own fix back; a file that nobody holds is still cured."""
    support.clobber(home / "state.db")
    support.put(home / ".env", b"\xef\xbb\xbfA=1\n")
    with (home / "state.db").open("rb"):
        done = support.doctor("fix", "--apply", "--home", home)

    assert done.code != 0
    assert (home / ".env").read_bytes() == b"A=1\n"


def test_a_look_that_timed_out(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the header could not be looked at in time, no stronger repair is planned instead."""
    support.clobber(home / "state.db")
    loaded = load.load()
    probes = Probes(Home(home))
    [finding] = [
        one
        for one in report.report(probes, loaded, loaded.checks).findings
        if one.code == "DB-NOTADB"
    ]

    def late(*_: object) -> NoReturn:
        raise CouldNotLook("reading the header took longer than 2 s")

    monkeypatch.setattr(DatabasesView, "header", late)
    [planned] = plan.plan(probes, loaded, [finding])

    assert (planned.steps, planned.refusal) == ((), "reading the header took longer than 2 s")


PLANTED = Planted("DB-NOTADB", lambda home: support.clobber(home / "state.db"))
