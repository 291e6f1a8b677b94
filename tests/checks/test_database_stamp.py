"""The number that newer releases give each state.db, compared without a running gateway."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from hermes_doctor.core.model import Severity, Status
from tests.helpers import damage, support
from tests.helpers.one_check import ask

ID = "database-stamp"
TOKEN = "89abcdef0123456789abcdef01234567"
STAMP = 0x09ABCDEF
OTHER = "0000beef0123456789abcdef01234567"


def stamp(path: Path, token: str = TOKEN, *, header: int | None = None) -> Path:
    """Number a database as Hermes 0.21 does."""
    number = (int(token[:8], 16) & 0x7FFFFFFF) or 1
    damage.execute(
        path,
        f"INSERT OR REPLACE INTO state_meta VALUES ('db_file_generation', '{token}')",
        f"PRAGMA application_id = {number if header is None else header}",
        "PRAGMA wal_checkpoint(TRUNCATE)",
    )
    return path


@pytest.fixture
def path(home: Path) -> Path:
    """A numbered history."""
    return stamp(damage.history(home / "state.db"))


def snapshot_of(home: Path, age: float = 3600) -> Path:
    """A snapshot of Hermes' own."""
    copy = home / "state-snapshots/20261115-000000/state.db"
    copy.parent.mkdir(parents=True)
    shutil.copyfile(home / "state.db", copy)
    os.utime(copy, (time.time() - age,) * 2)
    return copy


def test_healthy(home: Path, path: Path) -> None:
    """The same number everywhere, also in a copy and in the log."""
    snapshot_of(home)
    assert ask(ID, home)[0].status is Status.OK
    damage.with_log(path)
    assert ask(ID, home)[0].status is Status.OK


def test_older_releases(home: Path) -> None:
    """They number nothing."""
    damage.history(home / "state.db")
    assert ask(ID, home)[0].status is Status.SKIPPED


def test_a_new_number(home: Path, path: Path) -> None:
    """Another database is in the place of the one in the newest copy."""
    copy = snapshot_of(home)
    stamp(damage.history(path), OTHER)

    [found] = ask(ID, home)[1]

    assert (found.code, found.severity) == ("DB-REPLACED", Severity.WARNING)
    assert "state-snapshots/20261115-000000/state.db" in str(found.evidence)
    assert f"{STAMP:08x}" in str(found.evidence)
    os.utime(copy, (time.time() - 30 * 86400,) * 2)
    assert ask(ID, home)[1] == [], "an operator did it long ago"


def test_a_retired_log_names_another(home: Path, path: Path) -> None:
    """Hermes notes the number when it sets a log aside."""
    said = {"version": 1, "main": {"header": {"valid": True, "application_id": 77}}}
    manifest = support.put(
        home / "state.db.retired-wal-20261116-070812-4242/manifest.json", json.dumps(said)
    )
    [found] = ask(ID, home)[1]
    assert (found.code, found.title) == ("DB-REPLACED", "state.db was replaced by another database")
    said["main"] = {"header": {"application_id": STAMP}}
    manifest.write_text(json.dumps(said))
    assert ask(ID, home)[1] == []
    for odd in ("{", "[]", '{"main": 3}'):
        manifest.write_text(odd)
        assert ask(ID, home)[0].status is Status.OK


def test_the_file_contradicts_itself(home: Path) -> None:
    """Its first page and its rows are of two databases."""
    stamp(damage.history(home / "state.db"), header=4242)
    [found] = ask(ID, home)[1]
    assert (found.code, found.title) == ("DB-REPLACED", "state.db is a mixture of two databases")
