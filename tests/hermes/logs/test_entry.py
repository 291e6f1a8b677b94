"""Lines of Hermes' logs: heads, what follows them, and what is neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.hermes.logs import entry
from tests.helpers.log_lines import NOON, entries, line, texts, write

TRACEBACK = ["Traceback (most recent call last):", '  File "a.py", line 1', "ValueError: no"]


def log(home: Path, *lines: str) -> Path:
    """A gateway.log of these."""
    return write(home / "logs" / "gateway.log", lines, NOON)


def test_fields(home: Path) -> None:
    """All that an entry is made of."""
    log(
        home,
        line(NOON - 1.25, "first: with a colon", "WARNING", "gateway.platforms.qqbot.adapter"),
        line(NOON, "second", "ERROR", "a.b-c", session="20261115_001248_df794ef7"),
        *TRACEBACK,
    )

    first, second = entries(home)

    assert first.at == NOON - 1.25
    assert first[1:5] == ("WARNING", "gateway.platforms.qqbot.adapter", "first: with a colon", "")
    assert (first.more, first.source, first.offset) == ((), "logs/gateway.log", 0)
    assert (second.session, second.more) == ("20261115_001248_df794ef7", tuple(TRACEBACK))
    assert second.kind == "log"


def test_what_is_no_head(home: Path) -> None:
    """Lines that only look like one belong to the line before them; before the first to none."""
    odd = [
        "2026-99-99 99:99:99,000 INFO x: no such day",
        "2026-11-15 12:00:00,000 NOTICE x: no such level",
        "2026-11-15 12:00:00,00x INFO x: no such time",
        "2026-11-15 12:00:00,000 INFO x y: no such logger",
        "2026-11-15 12:00:00.000 INFO x: a point",
        "2026-11-15 12:00:00,000 INFO",
        f"2026-11-15 12:00:00,000 INFO {'x' * 5000}: long",
        "",
    ]
    log(home, *TRACEBACK, line(NOON - 1, "head"), *odd, line(NOON, "next"))

    first, second = entries(home)

    assert first.more == tuple(odd)
    assert (first.text, second.text, second.more) == ("head", "next", ())


def test_nobody_wants_it(home: Path) -> None:
    """What follows an entry that is left out sticks to no other."""
    log(
        home,
        line(NOON - 3, "kept", "WARNING"),
        line(NOON - 2, "left out"),
        *TRACEBACK,
        line(NOON - 1, "kept too", "WARNING"),
    )
    asked: list[tuple[str, str]] = []

    def wanted(level: str, logger: str) -> bool:
        asked.append((level, logger))
        return level != "INFO"

    found = entries(home, wanted=wanted)

    assert [(one.text, one.more) for one in found] == [("kept", ()), ("kept too", ())]
    assert sorted(asked) == [("INFO", "gateway.run"), ("WARNING", "gateway.run")], "asked once"


def test_out_of_the_window(home: Path) -> None:
    """The same for entries of before and after."""
    log(home, line(NOON - 9, "old"), *TRACEBACK, line(NOON - 5, "in"), line(NOON, "late"))

    assert [one[3:6] for one in entries(home, NOON - 6, until=NOON - 4)] == [("in", "", ())]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends(home: Path, end: str) -> None:
    """Those of Windows are no part of the text."""
    data = end.join([line(NOON, "one"), "more", line(NOON, "two")]) + end
    write(home / "logs" / "gateway.log", data.encode(), NOON)

    assert [(one.text, one.more) for one in entries(home)] == [("one", ("more",)), ("two", ())]


def test_bounds(home: Path) -> None:
    """A traceback without end and a line without end are cut, and the next line is whole."""
    log(
        home,
        line(NOON - 3, "many"),
        *["x"] * 10_000,
        line(NOON - 2, "y" * 3_000_000),
        line(NOON - 1, "wide"),
        *["z" * 50_000] * 3,
        line(NOON, "last"),
    )

    many, long, wide, last = entries(home)

    assert len(many.more) == entry.MORE_LINES
    assert len(long.text) <= entry.LONG
    assert sum(map(len, wide.more)) <= entry.MORE_BYTES
    assert (last.text, last.more) == ("last", ())


def test_bytes_of_any_kind(home: Path) -> None:
    """What is no text is replaced; the zeros that a lost machine leaves hide nothing."""
    head = line(NOON, "").encode()
    data = head + b"\xff\xfe\n" + b"\0" * 5000 + head + b"after\n" + head + b"a\0b\n"
    write(home / "logs" / "gateway.log", data + b"\0" * 600_000 + head + b"end", NOON)

    assert texts(home) == ["\ufffd\ufffd", "after", "a\0b", "end"]


def test_torn_end(home: Path) -> None:
    """A last line without its end is told; a last head without its message is not."""
    whole = line(NOON, "whole")
    for end, told in (("\n" + line(NOON, "to"), "to"), (f"\n{whole[:30]}", "whole")):
        write(home / "logs" / "gateway.log", (whole + end).encode(), NOON)
        assert texts(home)[-1] == told


def test_two_writers(home: Path) -> None:
    """Lines a little out of order are all told; none is lost at the window's start."""
    stamps = [NOON - 10, NOON - 4, NOON - 6, NOON - 3, NOON - 5.5, NOON]
    log(home, *[line(at, f"{NOON - at:g}") for at in stamps])

    assert sorted(texts(home, NOON - 6)) == ["0", "3", "4", "5.5", "6"]
