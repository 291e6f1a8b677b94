"""What was found in a file is remembered until the file changes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.system import file_facts
from hermes_doctor.core.system.files import open_regular
from tests.helpers import support


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Path]:
    """A file that was written a while ago, for a process that remembers."""
    file_facts.remember()
    yield aged(support.put(tmp_path / "library", "one"))
    file_facts.forget()


def aged(path: Path) -> Path:
    """The file; its last change counts as long ago."""
    file_facts.RECENT = -1e9
    return path


def ask(path: Path, found: list[str]) -> str:
    """What is in the file; each reading is noted."""

    def read() -> str:
        found.append("read")
        return path.read_text()

    fd = open_regular(path)
    try:
        said: str = file_facts.ask("text", fd, path, read)
    finally:
        os.close(fd)
    return said


@pytest.fixture(autouse=True)
def recent() -> Iterator[None]:
    """Restore what counts as recent."""
    before = file_facts.RECENT
    yield
    file_facts.RECENT = before


def test_an_unchanged_file_is_read_once(old: Path) -> None:
    """Also if another process has read it."""
    readings: list[str] = []

    assert [ask(old, readings) for _ in range(3)] == ["one"] * 3
    assert readings == ["read"]
    known = file_facts.news()
    file_facts.forget()
    file_facts.remember()
    file_facts.adopt(known)
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


def test_what_was_just_written_is_not_remembered(tmp_path: Path) -> None:
    """The next change may have the same time."""
    file_facts.remember()
    path = support.put(tmp_path / "library", "one")
    readings: list[str] = []

    ask(path, readings), ask(path, readings)

    assert len(readings) == 2
    file_facts.forget()


def test_without_a_watch_nothing_is_remembered(tmp_path: Path) -> None:
    """One run looks at everything."""
    readings: list[str] = []
    path = aged(support.put(tmp_path / "library", "one"))

    ask(path, readings), ask(path, readings)

    assert (len(readings), file_facts.news()) == (2, {})
