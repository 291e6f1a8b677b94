"""Files without a name that the gateway holds; a real one is in tests/real/test_deleted_logs.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.diagnosis.probes.database_users import DatabaseUsers, LostFile, OpenFile
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.helpers import damage
from tests.helpers.fix_contract import ProvedBy
from tests.helpers.given_answers import GivenAnswers
from tests.helpers.planned_steps import Steady, finding, owned, plan, sentences
from tests.repair.planning.test_deleted_logs import holding, late
from tests.scenarios.test_steps import apply, item, undo


class Blind(GivenAnswers):
    """Probes that were told of files without a name, and of who has the database open."""

    lost: tuple[LostFile, ...] = ()
    pids: tuple[int, ...] = ()

    def databases_lost_files(self) -> list[LostFile]:
        return list(self.lost)

    def databases_users(self) -> DatabaseUsers:
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


def test_cures_and_undoes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row is in the file, nothing is held any more, and undo restores the bytes."""
    path = damage.history(home / "state.db")
    with holding(path, "killed") as service:
        owned(monkeypatch, service)
        sick = path.read_bytes()
        assert Probes(Home(home)).databases.lost_files()
        found = finding("DB-DELETED-WAL", "restart-after-saving", "state.db", pid=service.running())

        done = apply(home, item(*plan(Probes(Home(home)), found)))

        assert done.state == "done", done.note
        assert late(path) == 50
        assert Probes(Home(home)).databases.lost_files() == []
    cured = path.read_bytes()
    assert undo(home, done).state == "done"
    assert path.read_bytes() == sick != cured


PROVED_BY = ProvedBy(
    "fixes/test_restart_after_saving.py::test_cures_and_undoes",
    why="It needs a gateway that has deleted files open.",
)
