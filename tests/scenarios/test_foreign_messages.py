"""Messages of somebody else that a symlink in the home leads to: root does not add them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.probes.unsaved_turns import HISTORY
from hermes_doctor.repair.planning.missing_messages import add_retired_rows
from hermes_doctor.sqlite import saved_rows
from tests.fixes.test_add_unsaved_turns import NOW, divert
from tests.helpers import crash_server, fix_cycle, support
from tests.helpers.crash_server import STRANGER
from tests.helpers.retired_log_home import FOLDER, retire
from tests.helpers.saved_log_home import message

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can read it")

CONTENTS = "SELECT content FROM messages"
FOREIGN = {"role": "user", "content": "a secret", "timestamp": NOW - 300}
FIX = ("--apply", "--yes")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody can get to."""
    with support.reachable_folder() as folder:
        yield folder


@pytest.fixture
def theirs(place: Path) -> Path:
    """A sound home of one user."""
    return _home(place / "home")


@pytest.fixture
def other(place: Path) -> Path:
    """The home of another user, closed to everybody else."""
    home = _home(place / "other")
    home.chmod(0o700)
    return home


def _home(path: Path) -> Path:
    support.healthy(path)
    (path / "state.db").unlink()
    fix_cycle.history(path / "state.db")
    return path


def contents(home: Path) -> set[str]:
    """What the messages of a home say."""
    return {str(row[0]) for row in fix_cycle.rows(home / "state.db", CONTENTS)}


@pytest.mark.parametrize("foreign", [0, STRANGER + 1], ids=["root's", "another user's"])
@pytest.mark.parametrize("kind", ["sessions", "pending_messages"])
def test_a_folder_of_messages(theirs: Path, other: Path, kind: str, foreign: int) -> None:
    """A folder of transcripts that leads to one that its owner may not enter."""
    crash_server.chown(theirs)
    divert(other, "s1", FOREIGN)
    said: dict[str, object] = {"reason": HISTORY, "session_id": "s1"}
    known = "SELECT role, content FROM messages WHERE session_id = 's1' ORDER BY id"
    stored = [
        {"role": role, "content": content}
        for role, content in fix_cycle.rows(theirs / "state.db", known)
    ]
    said["messages"] = [*stored, FOREIGN]
    support.put(other / "pending_messages" / "a.json", json.dumps(said))
    crash_server.chown(other, foreign)
    (theirs / FOLDER).mkdir()
    shutil.rmtree(theirs / kind, ignore_errors=True)
    (theirs / kind).symlink_to(other / kind)
    crash_server.chown(theirs)
    before = contents(theirs)

    done = support.doctor("fix", "SESSION-UNSAVED", *FIX, "--home", theirs)

    assert "Traceback" not in done.err
    assert contents(theirs) == before


def test_its_own_messages_are_added(theirs: Path) -> None:
    """The same files in a folder of his own: root adds them."""
    divert(theirs, "s1", FOREIGN)
    crash_server.chown(theirs)

    done = support.doctor("fix", "SESSION-UNSAVED", *FIX, "--home", theirs)

    assert done.code == 0, done.out + done.err
    assert FOREIGN["content"] in contents(theirs)


def test_a_log_of_another_home(theirs: Path, other: Path) -> None:
    """A log that was set aside, in a folder that leads to another home: neither is read."""
    retire(other / "state.db", *[message(n, "s1") for n in range(4)])
    crash_server.chown(other, STRANGER + 1)
    real = theirs / "real"
    shutil.copytree(other / FOLDER, real)
    crash_server.chown(theirs)
    shutil.rmtree(real)
    (theirs / FOLDER).symlink_to(other / FOLDER)
    os.chown(theirs / FOLDER, STRANGER, STRANGER, follow_symlinks=False)

    with pytest.raises(CannotFix):
        add_retired_rows(Probes(Home(theirs)), FOLDER)


def test_a_log_that_is_swapped(theirs: Path, other: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """He swaps the folder of his own log after its files were seen: the other one is not read."""
    for home, uid, saved in ((theirs, STRANGER, 3), (other, STRANGER + 1, 5)):
        retire(home / "state.db", *[message(n, "s1") for n in range(saved)])
        crash_server.chown(home, uid)
    real = saved_rows.open_saved

    def swapped(*args: object) -> object:
        if not (theirs / FOLDER).is_symlink():
            os.rename(theirs / FOLDER, theirs / "moved")
            (theirs / FOLDER).symlink_to(other / FOLDER)
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(saved_rows, "open_saved", swapped)

    with pytest.raises(CannotFix, match="CANTOPEN"):
        add_retired_rows(Probes(Home(theirs)), FOLDER)


def test_its_own_log_is_added(theirs: Path) -> None:
    """A log that was set aside in his home: root adds its messages."""
    retire(theirs / "state.db", *[message(n, "s1") for n in range(3)])
    crash_server.chown(theirs)

    done = support.doctor("fix", "DB-DELETED-WAL", *FIX, "--home", theirs)

    assert done.code == 0, done.out + done.err
    assert {f"saved {n}" for n in range(3)} <= contents(theirs)
