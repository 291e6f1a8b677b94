"""Files that never stand still while they are backed up."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_doctor.backup.vault import whole_backup
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system.files import Snapshot, snapshot
from hermes_doctor.sqlite import exclusive
from tests.helpers import support
from tests.helpers.database_writer import Once, back_up, half_done, writing

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


@pytest.mark.sampled
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

    with pytest.raises(Trouble, match=r"Another program is writing to one\.jsonl"):
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

        monkeypatch.setattr("hermes_doctor.backup.vault.save_database.time.sleep", wait)

        made = back_up(home)

    assert len(waited) == 1
    assert made.entry("memory_store.db")
    assert Vault(Home(home)).verify(made) == []


BECOMES: dict[str, Callable[[Path], object]] = {
    "absent": lambda _: None,
    "folder": Path.mkdir,
    "fifo": os.mkfifo,
    "symlink": lambda path: path.symlink_to("elsewhere"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("kind", BECOMES)
def test_it_becomes_something_else(home: Path, transcript: Path, kind: str) -> None:
    """What is no file any more by the time that it is saved stops no backup of the rest."""

    def act() -> None:
        transcript.unlink()
        BECOMES[kind](transcript)

    meanwhile = Once(half_done(home, "sessions/one.jsonl"), act)

    made = back_up(home, meanwhile)

    assert meanwhile.happened
    entry = made.entry("sessions/one.jsonl")
    assert (entry.kind if entry else None) == ("symlink" if kind == "symlink" else None)
    assert made.entry("config.yaml")
    assert Vault(Home(home)).verify(made) == []


def test_a_folder_that_vanishes_while_all_is_listed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not called one that nobody may read."""
    folder = support.put(home / "zzz" / "file", "x").parent

    def look(path: str) -> Snapshot:
        if folder.exists():
            (folder / "file").unlink()
            folder.rmdir()
        return snapshot(path)

    monkeypatch.setattr(whole_backup, "snapshot", look)

    names = [source.name for source in whole_backup.list_sources(Home(home))]

    assert "config.yaml" in names
    assert not [name for name in names if name.startswith("zzz")]


def test_a_database_that_vanishes_while_all_is_listed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody had it open, and it is gone."""

    def in_use(path: Path) -> bool:
        path.unlink()
        return True

    monkeypatch.setattr(exclusive, "in_use", in_use)

    assert not [source for source in whole_backup.list_sources(Home(home)) if source.live]
