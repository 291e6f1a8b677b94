"""A gateway that must be restarted; with real ones in tests/real/test_steering*.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.home import Home
from hermes_doctor.model import CannotFix
from hermes_doctor.probes import Probes
from hermes_doctor.probes.openfiles import Held, Lost, OpenFile
from tests.planned import Steady, finding, owned, sentences


class Blind(Probes):
    """Probes that were told of files without a name, and of who has the database open."""

    lost: tuple[Lost, ...] = ()
    pids: tuple[int, ...] = ()

    def lost_files(self) -> list[Lost]:
        return list(self.lost)

    def held(self) -> Held:
        path = self.home / "state.db"
        st = path.stat()
        opened = [OpenFile(pid, "3", path, False, (st.st_dev, st.st_ino)) for pid in self.pids]
        return Held(tuple(opened))


@pytest.fixture
def probes(home: Path, monkeypatch: pytest.MonkeyPatch) -> Blind:
    """A gateway that is process 7."""
    owned(monkeypatch, Steady(home, 7, home.parent))
    return Blind(Home(home))


def test_plan(probes: Blind) -> None:
    """Through its owner, with the reason; and only that process."""
    [said] = sentences(probes, finding("GW-SUSPENDED", "restart-gateway", pid=7))
    assert said.endswith("hermes-gateway.service: GW-SUSPENDED in a test")
    with pytest.raises(CannotFix, match="process 8 is not the gateway"):
        sentences(probes, finding("DB-LOCKED", "restart-gateway", pid=8))


def test_ended_by_now(probes: Blind, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs no more needs no restart."""
    owned(monkeypatch, Steady(probes.home.path, None, probes.home.path.parent))
    with pytest.raises(CannotFix, match="it runs no more"):
        sentences(probes, finding("GW-SUSPENDED", "restart-gateway"))


def test_files_without_a_name(probes: Blind) -> None:
    """What only the gateway has is kept first; another who has it open must end first."""
    path = probes.home / "state.db"
    wal = path.with_name("state.db-wal")
    probes.lost = (
        Lost(path, 7, "4", path, "database", "replaced"),
        Lost(path, 7, "5", wal, "log", "deleted"),
    )
    found = finding("DB-REPLACED", "restart-gateway", "state.db", pid=7)
    kept, restarted = sentences(probes, found)
    assert kept.startswith("keep the state.db that process 7 works on")
    assert restarted.startswith("restart the gateway")
    probes.pids = (7, 9)
    with pytest.raises(CannotFix, match=r"process 9 has state\.db open too"):
        sentences(probes, found)
