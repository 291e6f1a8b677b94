"""The records of updates: what was there before, to the letter, or a clear word."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.backup.records.updates import UPDATING, Update, UpdateRecords, process_identity
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Trouble
from hermes_doctor.hermes.installation.details import InstallationDetails
from hermes_doctor.hermes.installation.find import Installation
from hermes_doctor.operations.updates import before_update

BEFORE = InstallationDetails("0.18.2", "/opt/venv", "pip", packages={"httpx": "0.28.1"})


def update(id: str = "20261115-000000-000aa", **more: object) -> Update:
    made: dict[str, object] = {
        "id": id,
        "backup": "b-1",
        "vault": "",
        "before": BEFORE,
        "started_at": "2026-11-15T00:00:00+00:00",
    }
    return Update(**{**made, **more})  # type: ignore[arg-type]


def test_what_is_saved_is_what_is_read(home: Path) -> None:
    """Every field."""
    records = UpdateRecords(Home(home))
    made = update(stage=UPDATING, known=[["GW-DOWN", "gateway"]], gateway=42, exit_code=3)
    records.save(made)
    assert records.load(made.id) == made
    assert records.last() == made


def test_the_newest_one_that_can_be_read_is_the_last(home: Path) -> None:
    """A damaged record hides no other."""
    records = UpdateRecords(Home(home))
    records.save(update("20261115-000000-000aa"))
    records.save(update("20261116-000000-000aa"))
    (records.folder / "20261116-000000-000aa.json").write_text("{")
    last = records.last()
    assert last is not None
    assert last.id == "20261115-000000-000aa"
    with pytest.raises(Trouble, match="damaged"):
        records.load("20261116-000000-000aa")


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "other/1"},
        {"stage": "dancing"},
        {"id": "../../etc/passwd"},
        {"backup": "../x"},
        {"before": {"version": "1"}},
        {"started_at": "yesterday"},
        {"started_at": "2026-11-15T00:00:00"},
        {"known": [1]},
        {"known": None},
        {"known": [[1, 2]]},
        {"down": True},
        {"down": [1]},
        {"guard": ["x", 1]},
        {"sizes": {"messages": "many"}},
        {"vault": 5},
        {"gateway": "x"},
        {"before": {"version": "1", "where": 5, "kind": "pip"}},
        {"before": {"version": "1", "where": "/x", "kind": "pip", "packages": [1]}},
        {"more": 1},
    ],
)
def test_what_this_tool_did_not_write_is_not_believed(
    home: Path, change: dict[str, object]
) -> None:
    """A record names a backup and a place to install into."""
    records = UpdateRecords(Home(home))
    records.save(update())
    path = records.folder / "20261115-000000-000aa.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(Trouble):
        records.load("20261115-000000-000aa")


def test_a_name_that_is_a_path_is_refused(home: Path) -> None:
    """Before anything is opened."""
    with pytest.raises(Trouble, match="not the id"):
        UpdateRecords(Home(home)).load("../../config")


def test_old_records_go(home: Path) -> None:
    """They are small, and they are not for ever."""
    records = UpdateRecords(Home(home))
    for number in range(30):
        records.save(update(f"20261115-000000-{number:03d}aa"))
    assert len(records.ids()) == 20
    assert records.ids()[-1] == "20261115-000000-029aa"


def test_the_newest_is_the_newest_also_after_the_clock_was_set_back(home: Path) -> None:
    """And what was just saved is never what goes."""
    records = UpdateRecords(Home(home))
    for number in range(25):
        records.save(update(f"20991231-000000-{number:03d}aa"))
    made = before_update.record_state(Home(home), None, None, before_update.UpdatePreflight((), ()))
    assert records.ids()[-1] == made.id
    late = update("20200101-000000-000aa")
    records.save(late)
    assert late.id in records.ids()
    assert len(records.ids()) == 20


def test_a_damaged_newest_one_is_passed_over_by_looks_only(home: Path) -> None:
    """Who wants to change something has to say which is meant."""
    records = UpdateRecords(Home(home))
    records.save(update())
    (records.folder / "20261116-000000-000aa.json").write_text("{")
    assert records.last() == update()
    with pytest.raises(Trouble, match="20261115-000000-000aa"):
        records.newest()


@pytest.mark.parametrize(
    ("hours", "version", "expected"), [(0, "2", False), (2, "1", False), (2, "2", True)]
)
def test_an_update_from_a_chat_has_an_hour(hours: int, version: str, expected: bool) -> None:
    """No process sees it through; the gateway that it starts looks at it."""
    began = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
    seen = InstallationDetails("1", "/nowhere", "pip")
    made = update(stage=UPDATING, chat=True, started_at=began, before=seen)
    found = Installation(version, Path("/nowhere"), running=False)
    assert made.is_cut_off(found) is expected


def test_a_process_is_told_from_another_with_its_number() -> None:
    """By when it began."""
    mine = process_identity(os.getpid())
    assert mine is not None
    assert update(guard=mine).is_running()
    assert not update(guard=[mine[0], mine[1] + 1]).is_running()
    assert not update().is_running()
