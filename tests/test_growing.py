"""Files that never stand still while they are backed up."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_doctor.home import Home
from hermes_doctor.model import Trouble
from hermes_doctor.vault import Vault
from tests import support
from tests.writing import back_up, writing

LINE = b'{"a": "line"}\n'


@pytest.fixture
def transcript(home: Path) -> Path:
    """A file of some size."""
    return support.put(home / "sessions" / "one.jsonl", LINE * 200_000)


def test_somebody_adds_to_it_all_the_time(home: Path, transcript: Path) -> None:
    """What it held at one moment is saved, and nothing of it is torn."""

    def add(_: int) -> None:
        with transcript.open("ab") as file:
            file.write(LINE)

    made = back_up(home, progress=add)

    entry = made.entry("sessions/one.jsonl")
    assert entry is not None
    saved = made.copy_of(entry).read_bytes()
    assert transcript.read_bytes().startswith(saved)
    assert len(saved) == entry.size >= 200_000 * len(LINE)
    vault = Vault(Home(home))
    assert vault.verify(made) == []
    again = back_up(home)
    later = again.entry("sessions/one.jsonl")
    assert later is not None
    assert later.size == transcript.stat().st_size, "it is read again when it stands still"


@pytest.mark.parametrize("how", ["within", "shorter", "replaced"])
def test_somebody_does_more_than_that(home: Path, transcript: Path, how: str) -> None:
    """Then no copy is of one moment, and that is said."""
    turns = iter(range(10**6))

    def change(_: int) -> None:
        turn = next(turns)
        if how == "within":
            support.clobber(transcript, b"%9d" % turn, 100)
            support.clobber(transcript, b"%9d" % turn, 2_000_000)
        elif how == "shorter":
            os.truncate(transcript, transcript.stat().st_size - 1)
        else:
            new = support.put(home / "sessions" / "new", LINE * (150_000 + turn))
            new.rename(transcript)

    with pytest.raises(Trouble, match=r"one\.jsonl is being written to"):
        back_up(home, progress=change)
    assert Vault(Home(home)).ids() == []


def test_a_database_that_is_written_to_just_now(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a log nobody may read it meanwhile; that is waited for."""
    with writing(home / "memory_store.db", "DELETE") as writer:
        writer.write(1)
        writer.tell("BEGIN EXCLUSIVE")
        waited = []

        def wait(seconds: float) -> None:
            if seconds:
                waited.append(seconds)
                writer.tell("COMMIT")

        monkeypatch.setattr("hermes_doctor.saving.time.sleep", wait)

        made = back_up(home)

    assert len(waited) == 1
    assert made.entry("memory_store.db")
    assert Vault(Home(home)).verify(made) == []
