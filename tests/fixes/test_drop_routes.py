"""drop-routes: the chats of ended conversations go out of the file, the others stay."""

from __future__ import annotations

import json
from pathlib import Path

from hermes_doctor.backup.records.journal import ItemRecord
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.repair.transaction.run import Run
from hermes_doctor.repair.transaction.targets import Item
from tests.checks.test_routes import ENDED, chats
from tests.helpers import damage, planned_steps, recorded_homes, store_files, support
from tests.helpers.fix_contract import Planted


def test_drops_and_undoes(home: Path) -> None:
    """The plan names each chat; twice is once, and undo gives the file back."""
    path = store_files.write(home, "sessions/sessions.json")
    first, second = store_files.CHATS
    found = planned_steps.finding("SESSION-ROUTE-STALE", "drop-routes", "state.db", keys=[second])

    [step] = planned_steps.plan(Probes(Home(home)), found)

    assert step.lines() == ("sessions.json, chats:", f"  {first}", f"- {second}")
    sick = support.contents(home)
    record = ItemRecord("drop-routes", "SESSION-ROUTE-STALE", "state.db", "routes", [])
    run = Run(Home(home), Vault(Home(home)), "fix", "test")
    log = run.apply([Item(record, [step])], lambda _: [None])
    assert log.items[0].outcome == "verified"
    whole = store_files.WHOLE["sessions/sessions.json"]
    assert json.loads(path.read_text()) == {first: whole[first]}
    assert planned_steps.plan(Probes(Home(home)), found) == []
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick


def test_goes_on(home: Path) -> None:
    """A chat of a compressed conversation leads to where that goes on."""
    store_files.write(home, "sessions/sessions.json")
    first, second = store_files.CHATS
    found = planned_steps.finding(
        "SESSION-ROUTE-STALE", "drop-routes", "state.db", moved={second: "s2"}
    )

    [step] = planned_steps.plan(Probes(Home(home)), found)

    assert step.lines()[-2:] == (f"  {first}", f"~ {second}  continues in its newer conversation")
    assert json.loads(step.data)[second]["session_id"] == "s2"  # type: ignore[attr-defined]


def planted(home: Path) -> None:
    """A chat of an ended conversation, in a release that goes by the file."""
    recorded_homes.installed(home, "0.17.0")
    damage.execute(home / "state.db", ENDED)
    chats(home, "s1", "s9")


PLANTED = Planted("SESSION-ROUTE-STALE", planted)
