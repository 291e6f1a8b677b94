"""A user whose services end with the login; the act itself: tests/repair/steps/test_machine.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.model import CannotFix
from tests.helpers.fake_managers import asked, on_path
from tests.helpers.fake_supervision import Told, ask, unit
from tests.helpers.fix_contract import ProvedBy
from tests.helpers.planned_steps import finding, plan, sentences
from tests.repair.steps.test_machine import name
from tests.scenarios.test_steps import apply, item, undo


def test_plan(home: Path) -> None:
    """The owner of the home lingers afterwards; one who does already is left alone."""
    found = finding("GW-LINGER", "enable-linger")
    [said] = sentences(Told(home, [unit(home)], True, linger=False), found)
    assert "loginctl enable-linger" in said
    with pytest.raises(CannotFix, match="enabled already"):
        sentences(Told(home, [unit(home)], True, linger=True), found)


def test_cures_and_undoes(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The finding goes, a second time there is nothing to do, and undo ends the lingering."""
    managers = on_path(tmp_path / "managers", monkeypatch)
    _, [found] = ask("service-login", home, unit(home), linger=False)
    assert (found.code, found.fix) == ("GW-LINGER", "enable-linger")

    done = apply(home, item(*plan(Told(home, [unit(home)], True, linger=False), found)))

    assert done.state == "done", done.note
    assert ask("service-login", home, unit(home), linger=True)[1] == []
    with pytest.raises(CannotFix, match="enabled already"):
        plan(Told(home, [unit(home)], True, linger=True), found)
    assert undo(home, done).state == "done"
    assert asked(managers) == [f"loginctl {verb}-linger {name()}" for verb in ("enable", "disable")]


PROVED_BY = ProvedBy(
    "fixes/test_enable_linger.py::test_cures_and_undoes",
    why="It needs a service manager.",
)
