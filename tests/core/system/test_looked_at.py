"""What an examination looks at is recorded, and each kind of change of it is found."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_doctor.core.system import looked_at
from hermes_doctor.operations.watch.child_process import ChildProcesses


@pytest.fixture(autouse=True)
def old_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files of this moment count as old ones."""
    monkeypatch.setattr(looked_at, "RECENT", 0.0)


def recorded(look: Callable[[], object]) -> dict[str, looked_at.State]:
    """What a process of its own records while it looks."""

    def work() -> dict[str, looked_at.State]:
        recorder = looked_at.record()
        look()
        return recorder.states

    states: dict[str, looked_at.State] = ChildProcesses().run(work)
    return states


LOOKS: dict[str, Callable[[Path], object]] = {
    "open": lambda path: open(path).close(),
    "os.open": lambda path: os.close(os.open(path, os.O_RDONLY)),
    "read_text": lambda path: path.read_text(),
    "stat": lambda path: path.stat(),
    "lstat": lambda path: path.lstat(),
    "exists": lambda path: path.exists(),
    "os.path.isfile": lambda path: os.path.isfile(path),
    "access": lambda path: os.access(path, os.R_OK),
    "bytes": lambda path: os.stat(bytes(path)),
}


@pytest.mark.parametrize("name", LOOKS)
def test_ways_to_look(tmp_path: Path, name: str) -> None:
    """All of them are recorded, and the file counts as unchanged until it is written."""
    path = tmp_path / "file"
    path.write_text("old")
    states = recorded(lambda: LOOKS[name](path))
    assert looked_at.find_change(states) is None
    path.write_text("new")
    assert looked_at.find_change(states) == str(path)


def test_a_home_with_long_names(tmp_path: Path) -> None:
    """What the watch keeps of a home is bounded; a home with more is always examined."""

    def work() -> tuple[bool, int]:
        recorder = looked_at.record()
        for number in range(5000):
            os.path.exists(f"/{number:0200}")
        return recorder.is_complete(), sum(map(len, recorder.states))

    complete, characters = ChildProcesses().run(work)
    assert not complete and characters < looked_at.MOST_CHARACTERS + 300


def test_a_name_more_in_a_large_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with more names than are compared counts as changed by its times."""
    monkeypatch.setattr(looked_at, "MOST_NAMES", 3)
    for number in range(9):
        (tmp_path / str(number)).touch()
    states = recorded(lambda: os.listdir(tmp_path))
    assert looked_at.find_change(states) is None
    (tmp_path / "9").touch()
    assert looked_at.find_change(states) == f"{looked_at.NAMES_IN}{tmp_path}"


def test_a_folder_whose_time_was_put_back(tmp_path: Path) -> None:
    """A copy with `rsync -a` gives a folder the old time of modification, but not of change."""
    before = tmp_path.stat()
    states = recorded(lambda: os.listdir(tmp_path))
    (tmp_path / "new").touch()
    os.utime(tmp_path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert looked_at.find_change(states) == f"{looked_at.NAMES_IN}{tmp_path}"


def test_a_file_below_an_open_folder(tmp_path: Path) -> None:
    """It is opened by a name that says nothing without the folder."""
    (tmp_path / "file").write_text("old")

    def look() -> None:
        folder = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
        os.close(os.open("file", os.O_RDONLY, dir_fd=folder))

    states = recorded(look)
    (tmp_path / "file").unlink()
    assert str(tmp_path / "file") in states
    assert looked_at.find_change(states) is not None


def test_a_missing_file(tmp_path: Path) -> None:
    """It is a change when it appears, also if its folder was missing, too."""
    path = tmp_path / "folder" / "file"
    states = recorded(path.exists)
    path.parent.mkdir()
    assert looked_at.find_change(states) is None
    path.touch()
    assert looked_at.find_change(states) == str(path)


def test_names_in_a_folder(tmp_path: Path) -> None:
    """A name that comes and goes in between is no change; one that stays is."""
    states = recorded(lambda: os.listdir(tmp_path))
    (tmp_path / "new").touch()
    assert looked_at.find_change(states) == f"{looked_at.NAMES_IN}{tmp_path}"
    (tmp_path / "new").unlink()
    assert looked_at.find_change(states) is None


def test_a_folder_that_is_only_looked_for(tmp_path: Path) -> None:
    """Files in it are no change."""
    states = recorded(tmp_path.is_dir)
    (tmp_path / "new").touch()
    assert looked_at.find_change(states) is None
    tmp_path.chmod(0o700 if tmp_path.stat().st_mode & 0o77 else 0o755)
    assert looked_at.find_change(states) == str(tmp_path)


def test_a_link(tmp_path: Path) -> None:
    """Both the link and the file to which it leads count."""
    link, target = tmp_path / "link", tmp_path / "target"
    target.write_text("old")
    link.symlink_to(target)
    states = recorded(link.read_text)
    target.write_text("new")
    assert looked_at.find_change(states) == str(link)
    states = recorded(link.read_text)
    (tmp_path / "other").write_text("other")
    link.unlink()
    link.symlink_to(tmp_path / "other")
    assert looked_at.find_change(states) == str(link)


def test_a_file_of_this_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be written again and keep its time, so it always counts as changed."""
    monkeypatch.setattr(looked_at, "RECENT", 60.0)
    (tmp_path / "file").touch()
    states = recorded((tmp_path / "file").read_text)
    assert looked_at.find_change(states) == str(tmp_path / "file")


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    """The state before the first look counts, so the change is found."""
    path = tmp_path / "file"
    path.write_text("old")
    states = recorded(lambda: (path.read_text(), path.write_text("new"), path.read_text()))
    assert looked_at.find_change(states) == str(path)


def test_a_heartbeat(tmp_path: Path) -> None:
    """It is written all the time, so only its end is a change."""
    path = tmp_path / "gateway.heartbeat"
    path.write_text("1")
    states = recorded(path.read_text)
    path.unlink()
    path.write_text("22")
    assert looked_at.find_change(states) is None
    path.unlink()
    assert looked_at.find_change(states) == str(path)


def test_what_has_no_times() -> None:
    """The files of the kernel are not recorded."""
    states = recorded(lambda: (Path("/proc/self/stat").read_text(), os.listdir("/sys/fs")))
    assert not [path for path in states if path.startswith(("/proc/", "/sys/"))]


def test_the_next_moment() -> None:
    """The earliest one counts, and without a recorder nothing happens."""
    looked_at.note_moment(5.0)

    def work() -> float:
        recorder = looked_at.record()
        looked_at.note_moment(7.0)
        looked_at.note_moment(6.0)
        looked_at.note_moment(8.0)
        return recorder.until

    assert ChildProcesses().run(work) == 6.0
