"""Files without a name that the gateway holds; a real one is in tests/real/test_deleted_logs.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.home import Home
from hermes_doctor.model import CannotFix
from hermes_doctor.probes.database_users import DatabaseUsers, LostFile, OpenFile
from hermes_doctor.probes.probes import Probes
from tests.helpers.planned_steps import Steady, finding, owned, sentences


class Blind(Probes):
    """Probes that were told of files without a name, and of who has the database open."""

    lost: tuple[LostFile, ...] = ()
    pids: tuple[int, ...] = ()

    def lost_files(self) -> list[LostFile]:
        return list(self.lost)

    def held(self) -> DatabaseUsers:
        path = self.home / "state.db"
        st = path.stat()
        opened = [OpenFile(pid, "3", path, False, (st.st_dev, st.st_ino)) for pid in self.pids]
        return DatabaseUsers(tuple(opened))


@pytest.fixture
def probes(home: Path, monkeypatch: pytest.MonkeyPatch) -> Blind:
    """A gateway that is process 7."""
    owned(monkeypatch, Steady(home, 7, home.parent))
    return Blind(Home(home))


def test_saved_before_the_restart(probes: Blind) -> None:
    """What only the gateway has is saved first; another process that has it open comes before."""
    path = probes.home / "state.db"
    wal = path.with_name("state.db-wal")
    probes.pids = (7,)
    probes.lost = (
        LostFile(path, 7, "4", path, "database", "replaced"),
        LostFile(path, 7, "5", wal, "log", "deleted"),
    )
    found = finding("DB-REPLACED", "restart-after-saving", "state.db", pid=7)
    saved, kept, restarted = sentences(probes, found)
    assert saved.startswith("state.db: save what process 7 has open, with the write-ahead log")
    assert kept.startswith("state.db: save the deleted file of process 7")
    assert restarted.startswith("restart the gateway")
    probes.pids = (7, 9)
    with pytest.raises(CannotFix, match=r"Process 9 has state\.db open, too"):
        sentences(probes, found)


def test_another_process(probes: Blind) -> None:
    """Only the gateway is restarted."""
    with pytest.raises(CannotFix, match="Process 8 is not the gateway"):
        sentences(probes, finding("DB-DELETED-WAL", "restart-after-saving", "state.db", pid=8))
