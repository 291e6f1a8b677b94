"""A unit that is not enabled; with a real systemd in tests/real/test_stopped_on_purpose.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.backup.records.journal import MachineActionRecord
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.repair.steps.machine import EnableUnit, action_from_record
from tests.helpers.fake_managers import asked, on_path
from tests.helpers.fake_supervision import NAME, Told, ask, unit
from tests.helpers.fix_contract import ProvedBy
from tests.helpers.planned_steps import finding, plan, sentences
from tests.scenarios.test_steps import apply, item, undo


def test_plan(home: Path) -> None:
    """The plan has the command; a unit that is enabled is left alone."""
    off = unit(home, settings={"UnitFileState": "disabled"})
    found = finding("GW-NOT-ENABLED", "enable-service", unit=off)

    [said] = sentences(Told(home, [off], True), found)
    assert said == f"start it with the machine: systemctl --user enable {NAME}"
    with pytest.raises(CannotFix, match="enabled already"):
        sentences(Told(home, [unit(home)], True), found)


def test_from_a_receipt(home: Path) -> None:
    """`undo` disables what the fix enabled, and no unit of another name."""
    action = EnableUnit(Home(home), NAME, system=True)
    made = action_from_record(Home(home), MachineActionRecord(action.kind, action.words()))
    assert made == action

    words = {"unit": "sshd.service"}
    assert action_from_record(Home(home), MachineActionRecord(action.kind, words)) is None
    with pytest.raises(CannotFix, match="begin with hermes"):
        EnableUnit(Home(home), "my-bot.service", system=True).refuse()


def test_cures_and_undoes(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The finding goes, a second time there is nothing to do, and undo disables the unit."""
    managers = on_path(tmp_path / "managers", monkeypatch)
    off = unit(home, settings={"UnitFileState": "disabled"})
    _, findings = ask("service-restart", home, off)
    [found] = [one for one in findings if one.code == "GW-NOT-ENABLED"]
    assert found.fix == "enable-service"

    done = apply(home, item(*plan(Told(home, [off], True), found)))

    assert done.state == "done", done.note
    assert ask("service-restart", home, unit(home))[1] == []
    with pytest.raises(CannotFix, match="enabled already"):
        plan(Told(home, [unit(home)], True), found)
    assert undo(home, done).state == "done"
    verbs = ("enable", "disable")
    assert asked(managers) == [f"systemctl --user {verb} {NAME}" for verb in verbs]


PROVED_BY = ProvedBy(
    "fixes/test_enable_service.py::test_cures_and_undoes",
    why="It needs a service manager.",
)
