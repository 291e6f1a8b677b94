"""A unit that is not enabled; with a real systemd in tests/real/test_stopped_on_purpose.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.home import Home
from hermes_doctor.model import CannotFix
from hermes_doctor.records.journal import MachineActionRecord
from hermes_doctor.steps.machine import EnableUnit, action_from_record
from tests.helpers.fake_supervision import NAME, Told, unit
from tests.helpers.planned_steps import finding, sentences


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
