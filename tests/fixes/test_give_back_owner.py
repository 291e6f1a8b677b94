"""give-back-owner: the gateway's user may write its databases again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.helpers import damage, fix_cycle, support
from tests.helpers.fix_contract import Planted

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
USER = 4242


@pytest.fixture
def theirs(home: Path) -> Path:
    """A home of another user, with a log beside the history."""
    damage.with_log(damage.history(home / "state.db", 60))
    for path in (home, *home.rglob("*")):
        os.chown(path, USER, USER)
    home.parent.chmod(0o755)
    return home


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["state.db", "state.db-wal", "state.db-shm", "kanban.db"])
def test_gives_back(theirs: Path, name: str) -> None:
    """A file that a command under sudo left; content and mode stay as they are."""
    path = theirs / name
    data = path.read_bytes()
    os.chown(path, 0, 0)
    path.chmod(0o644)

    cured = fix_cycle.cure(theirs, "DB-OWNER", "give-back-owner", name)

    st = path.stat()
    assert (st.st_uid, st.st_gid, st.st_mode & 0o777) == (USER, USER, 0o644)
    assert path.read_bytes() == data
    assert cured.steps == [f"{name}: give it to the owner of the home (uid 0 → {USER})"]
    cured.undo()


def test_lets_the_owner_write(theirs: Path) -> None:
    """A file that its owner may only read."""
    path = theirs / "state.db"
    path.chmod(0o440)

    cured = fix_cycle.cure(theirs, "DB-OWNER", "give-back-owner")

    assert path.stat().st_mode & 0o777 == 0o640
    assert path.stat().st_uid == USER
    cured.undo()


def test_both_at_once(theirs: Path) -> None:
    """Root's, and closed to everybody."""
    path = theirs / "state.db-wal"
    os.chown(path, 0, 0)
    path.chmod(0o400)

    fix_cycle.cure(theirs, "DB-OWNER", "give-back-owner", "state.db-wal").undo()


def test_a_folder_is_nobodys_to_give(theirs: Path) -> None:
    """What is no file is reported and left."""
    (theirs / "state.db-wal").unlink()
    (theirs / "state.db-wal").mkdir()

    finding = support.finding(support.check(theirs), "DB-OWNER")

    assert finding["fix"] is None


def planted(home: Path) -> None:
    """A database of root's in the home of another user."""
    for path in (home, *home.rglob("*")):
        os.chown(path, USER, USER)
    home.parent.chmod(0o755)
    os.chown(home / "state.db", 0, 0)


PLANTED = Planted("DB-OWNER", planted)
