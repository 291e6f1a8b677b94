"""A gateway that must be restarted; with real ones in tests/real/test_steering*.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.installation.find import Installation
from hermes_doctor.repair.gateway.detached import Detached
from tests.helpers import support
from tests.helpers.fix_contract import ProvedBy
from tests.helpers.planned_steps import Steady, finding, owned, sentences


@pytest.fixture
def probes(home: Path, monkeypatch: pytest.MonkeyPatch) -> Probes:
    """A gateway that is process 7."""
    owned(monkeypatch, Steady(home, 7, home.parent))
    return Probes(Home(home))


def test_plan(probes: Probes) -> None:
    """Through its owner, with the reason; and only that process."""
    [said] = sentences(probes, finding("GW-SUSPENDED", "restart-gateway", pid=7))
    assert "hermes-gateway.service" in said and said.endswith(": GW-SUSPENDED in a test")
    with pytest.raises(CannotFix, match="Process 8 is not the gateway"):
        sentences(probes, finding("DB-LOCKED", "restart-gateway", pid=8))


def test_ended_by_now(probes: Probes, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs no more needs no restart."""
    owned(monkeypatch, Steady(probes.home.path, None, probes.home.path.parent))
    with pytest.raises(CannotFix, match="The gateway is not running"):
        sentences(probes, finding("GW-SUSPENDED", "restart-gateway"))


def test_a_history_that_was_repaired_by_hand(probes: Probes) -> None:
    """Only a restart lets the gateway open it again, and only if it can be read."""
    found = finding("SESSION-UNSAVED", "restart-gateway")
    path = probes.home / "state.db"
    support.put(path, "not a database\n" * 400)
    with pytest.raises(CannotFix, match=r"First repair state\.db"):
        sentences(Probes(probes.home), found)
    path.unlink()
    support.history(path)

    [said] = sentences(Probes(probes.home), found)
    assert said.startswith("restart the gateway")


def test_no_program(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If Hermes cannot be run from here, the refusal says what to do with the gateway."""
    for pid, step in ((7, "Restart the gateway"), (None, "Start the gateway")):
        monkeypatch.setattr(Detached, "running", lambda _, pid=pid: pid)
        service = Detached(Home(home), installation=Installation("0.19.0", tmp_path, running=False))

        with pytest.raises(CannotFix, match=f"contains no Python for Hermes. {step} the way"):
            service.refuse()


def test_a_program_that_may_not_be_run(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link to a Python in a closed folder is not called missing."""
    monkeypatch.setattr(Detached, "running", lambda _: None)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("/root/closed/python")
    service = Detached(Home(home), installation=Installation("0.19.0", tmp_path, running=False))

    with pytest.raises(CannotFix, match=r"bin/python cannot be run by this user\. Start"):
        service.refuse()


PROVED_BY = ProvedBy(
    "real/test_steering_systemd.py::test_under_its_own_unit",
    why="It needs a real gateway; it changes no file, so there is nothing to undo.",
)
