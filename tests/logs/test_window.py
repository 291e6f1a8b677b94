"""The window's start: found from the end, in few looks, whatever lies in front of it."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.logs import hermes, rotated
from hermes_doctor.logs.entry import Unread
from hermes_doctor.logs.formats import LogWindow
from hermes_doctor.system.files import MEGABYTE
from tests.helpers.log_lines import NOON, entries, line, reading, refuse, texts, unread, write

GIGABYTE = 1024 * MEGABYTE


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many bytes each look at a file has got."""
    counted: list[int] = []
    real = os.pread

    def count(fd: int, length: int, start: int) -> bytes:
        data = real(fd, length, start)
        counted.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", count)
    yield counted


def test_cost_is_the_windows(home: Path, taken: list[int]) -> None:
    """Five gigabytes in front of the window cost no more than five megabytes."""
    path = home / "logs" / "gateway.log"
    new = [line(NOON - n / 10, f"new {n}") for n in range(3000, -1, -1)]
    old = "".join(line(NOON - 9e5, "old " + "x" * 200) + "\n" for _ in range(2000)).encode()
    costs = []
    for size in (5 * MEGABYTE, 5 * GIGABYTE):
        with path.open("wb") as file:
            file.truncate(size)
            for start in range(0, size, size // 5):
                file.seek(start)
                file.write(old)
            file.seek(size)
            file.write("".join(f"\n{one}" for one in new).encode() + b"\n")
        os.utime(path, (NOON, NOON))
        taken.clear()
        assert texts(home, NOON - 250)[0] == "new 2500"
        costs.append(sum(taken))
    assert costs[1] < 2 * MEGABYTE
    assert costs[1] < costs[0] + MEGABYTE


def test_quick_look(home: Path) -> None:
    """A bound leaves the oldest out, and says so."""
    path = home / "logs" / "gateway.log"
    write(path, [line(NOON - 20_000 + n, f"{n:05} {'x' * 60}") for n in range(20_001)], NOON)

    [gap] = unread(home, NOON - 20_000, max_bytes=MEGABYTE)

    assert gap == Unread("logs/gateway.log", "only the last 1.0 MB were read", partly=True)
    assert unread(home, NOON - 60, max_bytes=MEGABYTE) == []
    assert len(texts(home, NOON - 60, max_bytes=MEGABYTE)) == 61


@pytest.mark.sampled
@pytest.mark.parametrize("away", [-86400.0, -3600.0, 3600.0, 86400 * 365.0])
def test_clock_that_was_wrong(home: Path, away: float) -> None:
    """A clock that was wrong for a while hides nothing of before it."""
    lines = [line(NOON - 9000 + n, f"{n} {'x' * 300}") for n in range(9001)]
    for n in range(8300, 8600):
        lines[n] = line(NOON - 9000 + n + away, f"{n} wrong {'x' * 300}")
    write(home / "logs" / "gateway.log", lines, NOON)

    found = [text for text in texts(home, NOON - 7000) if "wrong" not in text]

    assert found[0].startswith("2000 ")
    assert len(found) == 9001 - 2000 - 300


def test_all_lines_of_one_time(home: Path) -> None:
    """A clock that stood still is no endless loop."""
    write(home / "logs" / "gateway.log", [line(NOON, f"{n}") for n in range(20_000)], NOON)

    assert len(entries(home, NOON)) == 20_000
    assert entries(home, NOON + 1) == []


@pytest.mark.sampled
@pytest.mark.parametrize("data", [b"", b"\n", b"\n" * 300_000, b"\0" * 300_000, b"x" * 300_000])
def test_nothing_dated(home: Path, data: bytes) -> None:
    """A file without one line that says when."""
    write(home / "logs" / "gateway.log", data, NOON)

    assert entries(home) == entries(home, NOON - 60) == []


def test_memory(home: Path) -> None:
    """A window is passed through, not held, a line without end included."""
    path = home / "logs" / "gateway.log"
    with path.open("wb") as file:
        for n in range(10):
            file.write("".join(line(NOON, f"{n} {'x' * 900}") + "\n" for _ in range(1000)).encode())
        file.write(line(NOON, "y" * 20_000_000).encode())
    os.utime(path, (NOON, NOON))
    write(home / "logs" / "errors.log", [line(NOON, "x" * 900, "ERROR")] * 10_000, NOON)
    tracemalloc.start()
    try:
        assert sum(1 for _ in reading(home)) == 20_001
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * MEGABYTE


def test_cut_while_read(home: Path) -> None:
    """A file that is emptied while it is read ends there."""
    path = home / "logs" / "gateway.log"
    write(path, [line(NOON, f"{n} {'x' * 100}") for n in range(20_000)], NOON)
    stream = rotated.entries([(path, "a")], hermes.FORMAT, LogWindow(0), report_unread=refuse)
    next(stream)
    os.truncate(path, 0)

    assert len(list(stream)) < 19_999


def test_written_to_while_read(home: Path) -> None:
    """A line that was half there when the file was opened is told whole."""
    path = home / "logs" / "gateway.log"
    lines = [line(NOON, "one"), *["more"] * 99, line(NOON, "two"), line(NOON, "three ha")]
    write(path, "\n".join(lines).encode(), NOON)
    stream = rotated.entries(
        [(path, "a")], hermes.FORMAT, LogWindow(0), report_unread=refuse, size=16
    )
    assert next(stream).text == "one"
    with path.open("ab") as file:
        file.write(b"lves\n" + line(NOON, "four").encode() + b"\n")

    assert [one.text for one in stream] == ["two", "three halves"]
