"""Files with messages that Hermes could not save."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.diagnosis.probes import large_files, unsaved_turns
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


def test_old_and_odd_transcripts(home: Path) -> None:
    """Of the names in the folder of sessions, only recent transcripts with messages count."""
    message, meta = '{"role": "user"}\n', '{"role": "session_meta"}\n'
    for name, said in {"new": message, "old": message, "ordinary": meta, "empty": ""}.items():
        support.put(home / "sessions" / f"{name}.jsonl", said)
    os.utime(home / "sessions" / "old.jsonl", (1e9, 1e9))
    names = ["empty.jsonl", "gone.jsonl", "new.jsonl", "old.jsonl", "ordinary.jsonl", "x.json"]

    found = unsaved_turns.find(Home(home), (0, 19, 1), lambda: names)

    assert [one.path.name for one in found.diverted] == ["new.jsonl"]


def test_too_many_names(home: Path) -> None:
    """More names than are read are said, instead of judging some of them."""
    names = ["a.jsonl"] * (large_files.MOST_SESSIONS + 1)

    with pytest.raises(CouldNotLook, match="sessions: contains more than 100000 entries"):
        unsaved_turns.find(Home(home), None, lambda: names)
