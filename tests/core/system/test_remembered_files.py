"""What a watch remembers of files from round to round."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.system import remembered_files
from hermes_doctor.core.system.files import open_regular
from hermes_doctor.core.system.remembered_files import RememberedFiles
from hermes_doctor.operations.watch.child_process import ChildProcesses
from tests.helpers import support


def test_nothing_before_it_is_asked_to() -> None:
    """Only a watch asks; a single command has no use for it."""
    files: RememberedFiles[str] = RememberedFiles(2)
    files.adopt({"a": ((1,), "x")})
    assert (files.entries, files.known()) == (None, {})


def test_the_last_ones_are_adopted() -> None:
    """What the process of a round has learned goes to the watch, but no more than the limit."""
    files: RememberedFiles[str] = RememberedFiles(2)
    files.remember()
    files.adopt({name: ((1,), name) for name in "abc"})
    files.remember()  # again: nothing is lost
    assert files.known() == {"b": ((1,), "b"), "c": ((1,), "c")}


def test_what_is_known_is_a_copy() -> None:
    """The process that gets it changes only its own."""
    files: RememberedFiles[str] = RememberedFiles(2)
    files.remember()
    files.known()["a"] = ((1,), "x")
    assert files.known() == {}


def test_forgotten() -> None:
    """Nothing is left, and nothing more is remembered."""
    files: RememberedFiles[str] = RememberedFiles(2)
    files.remember()
    files.adopt({"a": ((1,), "x")})
    files.forget()
    assert files.entries is None


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Path]:
    """A file that was written a while ago, for a process that remembers."""
    remembered_files.remember()
    yield aged(support.put(tmp_path / "library", "one"))
    remembered_files.forget()


def aged(path: Path) -> Path:
    """The file; its last change counts as long ago."""
    remembered_files.RECENT = -1e9
    return path


def ask(path: Path, found: list[str]) -> str:
    """What is in the file; each reading is noted."""

    def read() -> str:
        found.append("read")
        return path.read_text()

    fd = open_regular(path)
    try:
        said: str = remembered_files.ask("text", fd, path, read)
    finally:
        os.close(fd)
    return said


@pytest.fixture(autouse=True)
def recent() -> Iterator[None]:
    """Restore what counts as recent."""
    before = remembered_files.RECENT
    yield
    remembered_files.RECENT = before


def test_an_unchanged_file_is_read_once(old: Path) -> None:
    """Also if another process has read it."""
    readings: list[str] = []

    assert [ask(old, readings) for _ in range(3)] == ["one"] * 3
    assert readings == ["read"]
    known = remembered_files.news()
    remembered_files.forget()
    remembered_files.remember()
    remembered_files.adopt(known)
    assert (ask(old, readings), readings) == ("one", ["read"])


def test_a_changed_or_replaced_file_is_read_again(old: Path) -> None:
    """With the same size and time of its content, too."""
    readings: list[str] = []
    ask(old, readings)
    st = old.stat()
    old.write_text("two")
    os.utime(old, ns=(st.st_atime_ns, st.st_mtime_ns))
    assert ask(old, readings) == "two"
    support.put(old.with_name("new"), "six").rename(old)
    assert ask(old, readings) == "six"
    assert len(readings) == 3


def test_what_was_just_written_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next change may have the same time."""
    monkeypatch.setattr(remembered_files, "RECENT", 2.0)
    remembered_files.remember()
    path = support.put(tmp_path / "library", "one")
    readings: list[str] = []

    ask(path, readings), ask(path, readings)

    assert len(readings) == 2
    remembered_files.forget()


def test_without_a_watch_nothing_is_remembered(tmp_path: Path) -> None:
    """One run looks at everything."""
    readings: list[str] = []
    path = aged(support.put(tmp_path / "library", "one"))

    ask(path, readings), ask(path, readings)

    assert (len(readings), remembered_files.news()) == (2, {})


@pytest.fixture(autouse=True)
def old_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files of this moment count as old ones."""
    monkeypatch.setattr(remembered_files, "RECENT", 0.0)


def recorded(look: Callable[[], object]) -> dict[str, remembered_files.State]:
    """What a process of its own records while it looks."""

    def work() -> dict[str, remembered_files.State]:
        recorder = remembered_files.record()
        look()
        return recorder.states

    states: dict[str, remembered_files.State] = ChildProcesses().run(work)
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
    assert remembered_files.find_change(states) is None
    path.write_text("new")
    assert remembered_files.find_change(states) == str(path)


def test_a_home_with_long_names(tmp_path: Path) -> None:
    """What the watch keeps of a home is bounded; a home with more is always examined."""

    def work() -> tuple[bool, int]:
        recorder = remembered_files.record()
        for number in range(5000):
            os.path.exists(f"/{number:0200}")
        return recorder.is_complete(), sum(map(len, recorder.states))

    complete, characters = ChildProcesses().run(work)
    assert not complete and characters < remembered_files.MOST_CHARACTERS + 300


def test_a_name_more_in_a_large_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with more names than are compared counts as changed by its times."""
    monkeypatch.setattr(remembered_files, "MOST_NAMES", 3)
    for number in range(9):
        (tmp_path / str(number)).touch()
    states = recorded(lambda: os.listdir(tmp_path))
    assert remembered_files.find_change(states) is None
    (tmp_path / "9").touch()
    assert remembered_files.find_change(states) == f"{remembered_files.NAMES_IN}{tmp_path}"


def test_a_folder_whose_time_was_put_back(tmp_path: Path) -> None:
    """A copy with `rsync -a` gives a folder the old time of modification, but not of change."""
    before = tmp_path.stat()
    states = recorded(lambda: os.listdir(tmp_path))
    (tmp_path / "new").touch()
    os.utime(tmp_path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert remembered_files.find_change(states) == f"{remembered_files.NAMES_IN}{tmp_path}"


def test_a_file_below_an_open_folder(tmp_path: Path) -> None:
    """It is opened by a name that says nothing without the folder."""
    (tmp_path / "file").write_text("old")

    def look() -> None:
        folder = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
        os.close(os.open("file", os.O_RDONLY, dir_fd=folder))

    states = recorded(look)
    (tmp_path / "file").unlink()
    assert str(tmp_path / "file") in states
    assert remembered_files.find_change(states) is not None


def test_a_missing_file(tmp_path: Path) -> None:
    """It is a change when it appears, also if its folder was missing, too."""
    path = tmp_path / "folder" / "file"
    states = recorded(path.exists)
    path.parent.mkdir()
    assert remembered_files.find_change(states) is None
    path.touch()
    assert remembered_files.find_change(states) == str(path)


def test_names_in_a_folder(tmp_path: Path) -> None:
    """A name that comes and goes in between is no change; one that stays is."""
    states = recorded(lambda: os.listdir(tmp_path))
    (tmp_path / "new").touch()
    assert remembered_files.find_change(states) == f"{remembered_files.NAMES_IN}{tmp_path}"
    (tmp_path / "new").unlink()
    assert remembered_files.find_change(states) is None


def test_a_folder_that_is_only_looked_for(tmp_path: Path) -> None:
    """Files in it are no change."""
    states = recorded(tmp_path.is_dir)
    (tmp_path / "new").touch()
    assert remembered_files.find_change(states) is None
    tmp_path.chmod(0o700 if tmp_path.stat().st_mode & 0o77 else 0o755)
    assert remembered_files.find_change(states) == str(tmp_path)


def test_a_link(tmp_path: Path) -> None:
    """Both the link and the file to which it leads count."""
    link, target = tmp_path / "link", tmp_path / "target"
    target.write_text("old")
    link.symlink_to(target)
    states = recorded(link.read_text)
    target.write_text("new")
    assert remembered_files.find_change(states) == str(link)
    states = recorded(link.read_text)
    (tmp_path / "other").write_text("other")
    link.unlink()
    link.symlink_to(tmp_path / "other")
    assert remembered_files.find_change(states) == str(link)


def test_a_file_of_this_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be written again and keep its time, so it always counts as changed."""
    monkeypatch.setattr(remembered_files, "RECENT", 60.0)
    (tmp_path / "file").touch()
    states = recorded((tmp_path / "file").read_text)
    assert remembered_files.find_change(states) == str(tmp_path / "file")


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    """The state before the first look counts, so the change is found."""
    path = tmp_path / "file"
    path.write_text("old")
    states = recorded(lambda: (path.read_text(), path.write_text("new"), path.read_text()))
    assert remembered_files.find_change(states) == str(path)


def test_a_heartbeat(tmp_path: Path) -> None:
    """It is written all the time, so only its end is a change."""
    path = tmp_path / "gateway.heartbeat"
    path.write_text("1")
    states = recorded(path.read_text)
    path.unlink()
    path.write_text("22")
    assert remembered_files.find_change(states) is None
    path.unlink()
    assert remembered_files.find_change(states) == str(path)


def test_what_has_no_times() -> None:
    """The files of the kernel are not recorded."""
    states = recorded(lambda: (Path("/proc/self/stat").read_text(), os.listdir("/sys/fs")))
    assert not [path for path in states if path.startswith(("/proc/", "/sys/"))]


def test_the_next_moment() -> None:
    """The earliest one counts, and without a recorder nothing happens."""
    remembered_files.note_moment(5.0)

    def work() -> float:
        recorder = remembered_files.record()
        remembered_files.note_moment(7.0)
        remembered_files.note_moment(6.0)
        remembered_files.note_moment(8.0)
        return recorder.until

    assert ChildProcesses().run(work) == 6.0
