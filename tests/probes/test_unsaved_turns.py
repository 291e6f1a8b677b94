"""Files with messages that Hermes could not save."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.home import Home
from hermes_doctor.probes import unsaved_turns
from tests.helpers import support


def test_odd_files(home: Path) -> None:
    """Empty files, folders, symlinks and files without JSON do not stop it."""
    support.put(home / "pending_messages/a.json", "")
    support.put(home / "pending_messages/b.json", "not JSON")
    support.put(home / "pending_messages/c.txt", "{}")
    (home / "pending_messages/d.json").mkdir()
    (home / "pending_messages/e.json").symlink_to("b.json")
    support.put(home / "state.db.retired-wal-1-2", "a file, not a folder")

    found = unsaved_turns.find(Home(home))

    assert [one.path.name for one in found.pending] == ["b.json"]
    assert found.retired == ()
    assert found.diverted == ()


def test_nothing(home: Path) -> None:
    """A home without any of these folders."""
    assert not any(unsaved_turns.find(Home(home)))
