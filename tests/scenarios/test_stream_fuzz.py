"""Any bytes are a log; every entry of a real one comes back exactly once."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings, strategies as st

from hermes_doctor.core.home import Home
from hermes_doctor.hermes.logs import block_reader, entry, output, rotated
from hermes_doctor.hermes.logs.entry import Format, LogWindow, Unread
from hermes_doctor.hermes.logs.stream import read
from tests.helpers.log_lines import NOON, line, refuse, write

PIECES = st.sampled_from(
    [
        *(b"\n", b"\r\n", b"\0" * 40, b"x" * 3000, b"Traceback (most recent call last):\n"),
        *(b'{"ts": "2026-11-15T12:00:00+00:00", "tag": "gateway.start"}\n', b"{" * 3000, b"\xff"),
        *(
            line(NOON, "a").encode() + b"\n",
            line(NOON - 1e6, "b").encode(),
            b": ",
            b"1794744000.5\n",
        ),
        *(b"2026-11-15 12:00:00.5  out\n", b"@4000000069170000deadbeef x\n", b"=== end ===\n"),
        b"=== hermes update started 2026-11-15T12:00:00 ===\n",
    ]
)
BYTES = st.lists(PIECES | st.binary(max_size=60), max_size=40).map(b"".join)
FORMATS: list[Format] = [
    entry.HERMES_LOG,
    output.S6_LOG,
    entry.DIARY,
    entry.ENDING,
]
FORMATS += [entry.STARTS, entry.UPDATE]
ENTRY = st.tuples(
    st.floats(0, 5000),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\0"), max_size=30),
    st.lists(st.text(st.sampled_from("ab :,é0"), max_size=30), max_size=3),
    st.sampled_from(["INFO", "ERROR"]),
    st.sampled_from(["", "20261115_1"]),
)


@settings(max_examples=300, deadline=None)
@given(data=BYTES, size=st.integers(1, 200), ago=st.sampled_from([0.0, 50.0, 1e9]))
def test_any_bytes(data: bytes, size: int, ago: float) -> None:
    """No format raises, and what it gives lies in the window."""
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "log", data, NOON)
        for form in FORMATS:
            told: list[Unread] = []
            span = LogWindow(NOON - ago, NOON + ago)
            stream = rotated.entries(
                [(path, "log")], form, span, report_unread=told.append, size=size
            )
            assert all(abs(one.at - NOON) <= ago for one in stream)
            assert told == []


@settings(max_examples=60, deadline=None)
@given(data=BYTES)
def test_any_home(data: bytes) -> None:
    """Whatever lies where a log should, packed files among it."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for name in ("gateway.log", "gateway.log.1.gz", "errors.log", "update.log"):
            write(home / "logs" / name, data, NOON)
        for name in ("gateway-exit-diag.log", "gateway.error.log", "gateways/default/current"):
            write(home / "logs" / name, data, NOON)
        found = read(Home(home), since=0)
        for entry in found:
            assert found.where(entry).startswith("logs/")


@settings(max_examples=200, deadline=None)
@given(
    wrote=st.lists(ENTRY, max_size=30),
    size=st.integers(1, 300),
    window=st.floats(0, 5000),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_every_entry_once(
    wrote: list[tuple[float, str, list[str], str, str]], size: int, window: float, end: str
) -> None:
    """Whatever the size of the blocks, and wherever the window begins."""
    wrote.sort(key=lambda one: -one[0])
    expected = []
    data = ""
    for ago, text, more, level, session in wrote:
        at = round(NOON - ago, 3)
        data += end.join([line(at, text, level, session=session), *more]) + end
        if at >= NOON - window:
            expected.append((round(at, 3), level, text, tuple(more), session))
    with tempfile.TemporaryDirectory() as folder:
        written = NOON - wrote[-1][0] if wrote else NOON
        path = write(Path(folder) / "log", data.encode(), written)
        span = LogWindow(NOON - window)
        stream = rotated.entries(
            [(path, "log")], entry.HERMES_LOG, span, report_unread=refuse, size=size
        )
        found = [(round(e.at, 3), e.level, e.text, e.more, e.session) for e in stream]
    assert found == expected


@settings(max_examples=100, deadline=None)
@given(data=BYTES, size=st.integers(1, 100), start=st.integers(0, 50))
def test_every_line_once(data: bytes, size: int, start: int) -> None:
    """Blocks are the lines of the file, each where it says that it is."""
    start = data.find(b"\n", start) + 1
    with tempfile.TemporaryDirectory() as folder:
        file = block_reader.OpenLog(write(Path(folder) / "log", data, NOON), "log")
        try:
            got = []
            for begin, lines in block_reader.blocks(file, start, size):
                for one in lines:
                    got.append(one)
                    assert data[begin:].lstrip(b"\0").startswith(one)
                    begin += len(one) + 1
        finally:
            file.close()
    assert _letters(b"".join(got)) == _letters(data[start:])


def _letters(data: bytes) -> bytes:
    return data.translate(None, b"\n\r\0")
