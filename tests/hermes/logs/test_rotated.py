"""A log and what it was rotated into, as one."""

from __future__ import annotations

import gzip
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.system.files import MEGABYTE
from hermes_doctor.hermes.logs import block_reader, entry, rotated
from hermes_doctor.hermes.logs.entry import LogWindow, Unread
from tests.helpers.log_lines import NOON, entries, line, reading, refuse, texts, unread, write

HOUR = 3600.0


def rotate(folder: Path, name: str = "gateway.log") -> None:
    """As the handler of Python does."""
    for number in (3, 2, 1):
        path = folder / f"{name}.{number}"
        if path.exists():
            path.rename(folder / f"{name}.{number + 1}")
    (folder / name).rename(folder / f"{name}.1")


def fill(home: Path) -> None:
    """Four files of ten lines, an hour each, the oldest packed."""
    for number in range(4):
        end = NOON - number * HOUR
        name = "gateway.log" + (f".{number}" if number else "")
        lines = [line(end - 60 * n, f"{number}-{n}") for n in range(9, -1, -1)]
        path = write(home / "logs" / name, lines, end)
        if number == 3:
            packed = gzip.compress(path.read_bytes())
            path.unlink()
            write(path.with_name(f"{name}.gz"), packed, end)


def test_order(home: Path) -> None:
    """Oldest first, packed or not, and nothing that only has a name like it."""
    fill(home)
    write(home / "logs" / "gateway.log.old", [line(NOON, "other")], NOON)

    found = entries(home)

    assert [one.text for one in found] == [
        f"{k}-{n}" for k in (3, 2, 1, 0) for n in range(9, -1, -1)
    ]
    assert found[0].source == "logs/gateway.log.3.gz"
    assert [one.at for one in found] == sorted(one.at for one in found)


def test_only_as_far_as_needed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of before the window are not read."""
    fill(home)
    taken: dict[str, int] = {}
    real = block_reader.OpenLog.read

    def note(self: block_reader.OpenLog, start: int, length: int) -> bytes:
        data = real(self, start, length)
        taken[self.name] = taken.get(self.name, 0) + len(data)
        return data

    monkeypatch.setattr(block_reader.OpenLog, "read", note)

    assert len(texts(home, NOON - HOUR - 120)) == 13
    assert sorted(taken) == ["logs/gateway.log", "logs/gateway.log.1"]


def test_names() -> None:
    """Numbers count, dates sort, and numbers come before dates."""
    present = ["a.log", "a.log.10", "a.log.2.gz", "a.log-20261114.gz", "a.log-20261115", "a.log.x"]

    assert rotated.names("a.log", present) == [
        *("a.log", "a.log.2.gz", "a.log.10", "a.log-20261115", "a.log-20261114.gz")
    ]


def test_rotated_while_read(home: Path) -> None:
    """Neither twice nor not at all, whenever it happens; and its place is still found."""
    fill(home)
    expected = texts(home)
    found = reading(home)
    stream = iter(found)
    first = next(stream)
    rotate(home / "logs")
    write(home / "logs" / "gateway.log", [line(NOON + 1, "new")], NOON + 1)
    rest = list(stream)

    assert [first.text, *(one.text for one in rest)] == expected
    assert found.where(rest[-1]) == "logs/gateway.log:10"


def test_rotated_between_two_looks(home: Path) -> None:
    """The same file under two names is read once."""
    path = write(home / "logs" / "gateway.log", [line(NOON, "one")], NOON)
    os.link(path, home / "logs" / "gateway.log.1")

    assert texts(home) == ["one"]


def test_current_is_missing(home: Path) -> None:
    """Between renaming the old and making the new there is none."""
    fill(home)
    rotate(home / "logs")

    assert len(texts(home)) == 40


def test_damaged_archive(home: Path) -> None:
    """What comes before the damage is told, and that there was one."""
    lines = "".join(line(NOON, f"{n} {os.urandom(60).hex()}") + "\n" for n in range(5000)).encode()
    packed = gzip.compress(lines)
    for broken in (packed[: len(packed) // 2], packed[:4000] + b"\0" * 2000 + packed[6000:]):
        write(home / "logs" / "gateway.log.1.gz", broken, NOON)

        found = reading(home)

        assert 0 < len(list(found)) < 5000
        [gap] = found.unread
        assert gap.partly and "damaged" in gap.why
    write(home / "logs" / "gateway.log.1.gz", b"not packed at all", NOON)
    assert [gap.source for gap in unread(home)] == ["logs/gateway.log.1.gz"]


def test_bomb(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file that unpacks into a huge one is read up to a bound."""
    monkeypatch.setattr(block_reader, "UNPACKED", 1_000_000)
    data = (line(NOON, "x" * 1000).encode() + b"\n") * 10_000
    write(home / "logs" / "gateway.log.1.gz", gzip.compress(data), NOON)

    found = reading(home)

    assert 900 < len(list(found)) < 1000
    assert [gap.partly for gap in found.unread] == [True]


def test_bound_of_what_is_packed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick look unpacks no more than it reads of other files, whatever the packed one claims."""
    got = 0
    real = block_reader.CompressedLog.read

    def note(self: block_reader.CompressedLog, start: int, length: int) -> bytes:
        nonlocal got
        data = real(self, start, length)
        got += len(data)
        return data

    monkeypatch.setattr(block_reader.CompressedLog, "read", note)
    data = (line(NOON, "x" * 1000).encode() + b"\n") * 2_000
    packed = gzip.compress(data)
    path = home / "logs" / "gateway.log.1.gz"
    write(path, packed, NOON)

    [gap] = unread(home, max_bytes=300_000)
    assert (gap.source, gap.partly, got) == ("logs/gateway.log.1.gz", True, 0)
    assert "--deep" in gap.why and unread(home, max_bytes=None) == []

    got = 0
    write(path, packed[:-4] + (1000).to_bytes(4, "little"), NOON)
    [gap] = unread(home, max_bytes=300_000)
    assert gap.partly and 0 < got < 600_000

    write(path, gzip.compress(data[:200_000]), NOON)
    assert unread(home, max_bytes=300_000) == []


def test_bound_over_all_files(home: Path) -> None:
    """A bound holds for a log with all its files; what lies behind it is named."""
    for number, name in enumerate(["gateway.log", "gateway.log.1", "gateway.log.2"]):
        lines = [line(NOON - number * HOUR - 1000 + n, f"{'x' * 200}") for n in range(1001)]
        write(home / "logs" / name, lines, NOON - number * HOUR)

    gaps = unread(home, max_bytes=300_000)

    assert [gap.source for gap in gaps] == ["logs/gateway.log.1"]


def test_packed_in_several_pieces(tmp_path: Path) -> None:
    """Files that were packed one by one and put together."""
    parts = [line(NOON, f"{n}").encode() + b"\n" for n in range(300)]
    path = write(tmp_path / "a.gz", b"".join(map(gzip.compress, parts)), NOON)

    found = rotated.entries([(path, "a.gz")], entry.HERMES_LOG, LogWindow(0), report_unread=refuse)

    assert [one.text for one in found] == [f"{n}" for n in range(300)]


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
    stream = rotated.entries([(path, "a")], entry.HERMES_LOG, LogWindow(0), report_unread=refuse)
    next(stream)
    os.truncate(path, 0)

    assert len(list(stream)) < 19_999


def test_written_to_while_read(home: Path) -> None:
    """A line that was half there when the file was opened is told whole."""
    path = home / "logs" / "gateway.log"
    lines = [line(NOON, "one"), *["more"] * 99, line(NOON, "two"), line(NOON, "three ha")]
    write(path, "\n".join(lines).encode(), NOON)
    stream = rotated.entries(
        [(path, "a")], entry.HERMES_LOG, LogWindow(0), report_unread=refuse, size=16
    )
    assert next(stream).text == "one"
    with path.open("ab") as file:
        file.write(b"lves\n" + line(NOON, "four").encode() + b"\n")

    assert [one.text for one in stream] == ["two", "three halves"]
