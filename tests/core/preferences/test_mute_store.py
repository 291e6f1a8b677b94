"""The files with the mutes: written whole, by one process at a time, and readable for watches."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.model import Severity, Trouble
from hermes_doctor.core.preferences import mute_store, places
from hermes_doctor.core.preferences.mutes import Mute
from tests.helpers.example_reports import NOW


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two folders for the files."""
    monkeypatch.setattr(places, "SYSTEM", tmp_path / "etc")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def mute(code: str = "A", subject: str | None = None, home: str = "/srv/hermes") -> Mute:
    """Some mute."""
    return Mute(
        home,
        code,
        subject,
        {"x": Severity.ERROR},
        Severity.ERROR,
        ("look",),
        NOW,
        NOW + timedelta(days=7),
        because="we know",
    )


def test_there_and_back(tmp_path: Path) -> None:
    """All fields are kept, in a private file; one with the same name is replaced."""
    assert mute_store.load() == []
    rest = mute("B", "some/thing")._replace(severities=None, until=None, sticky=True)
    path = mute_store.add(mute())
    mute_store.add(rest)
    mute_store.add(mute()._replace(because="better reason"))

    assert path == tmp_path / "config" / "hermes-doctor" / "mutes.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert mute_store.load() == [rest, mute()._replace(because="better reason")]


def test_removing(tmp_path: Path) -> None:
    """Only those that are named; without any, the file is gone."""
    mute_store.add(mute())
    mute_store.add(mute("B"))
    mute_store.remove([mute(), mute("C")])
    assert mute_store.load() == [mute("B")]
    mute_store.remove([mute("B")])
    assert not (tmp_path / "config" / "hermes-doctor" / "mutes.json").exists()


def test_those_for_all_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch of any user must be able to read them, whatever root's umask is."""
    monkeypatch.setattr(places, "writing_folder", lambda: places.SYSTEM)
    before = os.umask(0o077)
    try:
        path = mute_store.add(mute())
    finally:
        os.umask(before)
    assert path.parent == tmp_path / "etc"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o755
    monkeypatch.undo()


def test_both_files_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a mute is removed from the one it is in."""
    with monkeypatch.context() as root:
        root.setattr(places, "writing_folder", lambda: places.SYSTEM)
        mute_store.add(mute("ROOT"))
    mute_store.add(mute("OWN"))
    assert [one.code for one in mute_store.load()] == ["ROOT", "OWN"]
    mute_store.remove([mute("ROOT")])
    assert [one.code for one in mute_store.load()] == ["OWN"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff\xfe",
        b'{"schema": "hermes-doctor/mutes/2", "mutes": []}',
        b'{"schema": "hermes-doctor/mutes/1", "mutes": [{}]}',
        b'{"schema": "hermes-doctor/mutes/1", "mutes": 3}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_file(tmp_path: Path, content: bytes) -> None:
    """One line says which; it is not overwritten."""
    path = tmp_path / "config" / "hermes-doctor" / "mutes.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    for act in (mute_store.load, lambda: mute_store.add(mute())):
        with pytest.raises(Trouble, match=r"mutes\.json is damaged\. Delete it"):
            act()
    assert path.read_bytes() == content


def test_a_time_without_zone_is_damage(tmp_path: Path) -> None:
    """It could not be compared with the clock."""
    path = mute_store.add(mute())
    data = json.loads(path.read_text())
    data["mutes"][0]["until"] = "2026-11-15T03:15:00"
    path.write_text(json.dumps(data))
    with pytest.raises(Trouble, match="damaged"):
        mute_store.load()


def test_a_folder_that_others_can_write(tmp_path: Path) -> None:
    """What is stored there would be refused."""
    folder = tmp_path / "config" / "hermes-doctor"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.raises(Trouble, match="Refused to write"):
        mute_store.add(mute())
    assert not list(folder.iterdir())


def test_another_process_keeps_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for ever; the folder itself can be locked by anybody, so it does not count."""
    path = mute_store.add(mute())
    monkeypatch.setattr(mute_store, "PATIENCE", 0.2)
    folder = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    mute_store.add(mute("B"))
    own = os.open(path.parent / mute_store.LOCK, os.O_RDWR)
    fcntl.flock(own, fcntl.LOCK_EX)
    try:
        with pytest.raises(Trouble, match="Another process is changing the mutes"):
            mute_store.add(mute("C"))
    finally:
        os.close(own)
        os.close(folder)
    assert stat.S_IMODE((path.parent / mute_store.LOCK).stat().st_mode) == 0o600


def test_a_file_that_disappears_while_it_is_read() -> None:
    """It then has no mutes."""
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            mute_store.add(mute())
            mute_store.remove([mute()])

    thread = threading.Thread(target=change)
    thread.start()
    try:
        found = [mute_store.load() for _ in range(300)]
    finally:
        stop.set()
        thread.join()
    assert all(one in ([], [mute()]) for one in found)


def test_one_file_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutes in the other one are removed."""
    with monkeypatch.context() as root:
        root.setattr(places, "writing_folder", lambda: places.SYSTEM)
        mute_store.add(mute("ROOT"))
    mute_store.add(mute("OWN"))
    write = mute_store._write

    def refuse(path: Path, new: object) -> None:
        if path.parent == places.SYSTEM:
            raise PermissionError(13, "Permission denied")
        write(path, new)  # type: ignore[arg-type]

    monkeypatch.setattr(mute_store, "_write", refuse)
    with pytest.raises(Trouble, match=r"Could not write .*permission denied\. Run this with sudo"):
        mute_store.remove([mute("ROOT"), mute("OWN")])
    assert [one.code for one in mute_store.load()] == ["ROOT"]


def test_many_at_once() -> None:
    """No mute is lost."""
    threads = [threading.Thread(target=mute_store.add, args=(mute(f"C{n}"),)) for n in range(12)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert {one.code for one in mute_store.load()} == {f"C{n}" for n in range(12)}


def test_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line with the reason."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    with pytest.raises(Trouble, match=r"Could not write .*: not a directory\."):
        mute_store.add(mute())
