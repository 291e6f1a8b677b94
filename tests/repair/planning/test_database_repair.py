"""What the repair of a database would lose is said before the question."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.repair.planning import database_repair
from tests.helpers import support


@pytest.fixture
def truncated(home: Path) -> Path:
    """A home whose history lost its last pages."""
    path = home / "state.db"
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        support.say(db, *(f"message {n} " + "words " * 60 for n in range(300)))
    os.truncate(path, path.stat().st_size // 4096 * 4 // 5 * 4096)
    return home


def test_the_plan_says_what_the_receipt_will_say(truncated: Path) -> None:
    """The plan tries it on a copy; the home stays as it is."""
    before = support.tree(truncated)
    plan = support.doctor("fix", "DB-TRUNCATED", "--home", truncated)
    said = support.doctor("fix", "DB-TRUNCATED", "--home", truncated, "--json")

    [step] = said.json["repair"]["plan"][0]["steps"]
    assert step["losses"] in plan.out
    assert "no data is lost" not in plan.out
    assert support.tree(truncated) == before

    done = support.doctor("fix", "DB-TRUNCATED", "--apply", "--yes", "--home", truncated)
    [line] = [one for one in done.out.splitlines() if "messages:" in one]
    numbers = [word for word in line.replace(",", " ").split() if word.isdigit()]
    saved, partial, lost, there = numbers
    assert step["losses"] == (
        f"Saves {saved} of {there} messages; {partial} in part; {lost} lost. "
        "The damaged file is kept."
    )
    assert int(lost) > 0


def test_nothing_is_lost(home: Path) -> None:
    """An edit of a text that is shown loses nothing; a database may need a stronger repair."""
    (home / ".env").write_bytes(b"\xef\xbb\xbf" + (home / ".env").read_bytes())
    assert "no data is lost" in support.doctor("fix", "--home", home).out

    support.clobber(home / "state.db")
    assert "no data is lost" not in support.doctor("fix", "--home", home).out


def test_a_large_database_is_not_tried(truncated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That would take minutes; the plan says in general what is lost."""
    monkeypatch.setattr(database_repair, "TRIAL", 1)
    probes = Probes(Home(truncated))

    step = database_repair.database_repair(probes, truncated / "state.db", ["rows"], "save rows")

    assert step.losses() == ("Rows on damaged or missing pages are lost; the result says how many.")


def test_a_trial_that_fails(truncated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full temporary folder is no reason not to show the plan."""

    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("hermes_doctor.core.system.disk.copy", full)
    probes = Probes(Home(truncated))

    step = database_repair.database_repair(probes, truncated / "state.db", ["rows"], "save rows")

    assert step.losses().startswith("Rows on damaged or missing pages are lost")
