"""How a settings file changes, without its secrets."""

from __future__ import annotations

import pytest

from hermes_doctor.backup.records.journal import ItemRecord, Journal
from hermes_doctor.core import redaction
from hermes_doctor.render import diff
from hermes_doctor.render.diff import MANY, SHOWN, split
from hermes_doctor.render.repair import receipt_lines


def test_diff() -> None:
    """Both sides are masked line by line, and the heads name the file."""
    before, after = b"port: 1\nkey: canary1\n", b"port: 2\nkey: canary2\nb: true\n"
    made = list(diff.redacted_diff("x.yaml", before, after))

    assert [text[:10] for text in made[:2]] == ["--- x.yaml", "+++ x.yaml"]
    assert "-port: 1" in made
    assert "+port: 2" in made
    assert "+b: true" in made
    assert "canary" not in "".join(made)


def test_diff_is_bounded() -> None:
    """A long difference ends with how much more there is."""
    made = list(diff.redacted_diff("x", b"", b"a: 1\n" * 1000))

    assert len(made) == diff.MOST_LINES + 1
    assert made[-1].endswith("more lines")


@pytest.mark.parametrize(
    "data", [b"\xff\xfe\x00", b"\0" * 10, b"\x85\xe2\x80\xa8\n", "x\x0cy\x1cz\u2028w".encode()]
)
def test_diff_of_any_bytes(data: bytes) -> None:
    """Whatever the bytes are, each row of the difference is one line."""
    for text in diff.redacted_diff("x", data, b"a: 1\n"):
        assert text == redaction.clean(text)


def test_text_over_several_lines() -> None:
    """Blocks and quoted runs may hold anything, names and numbers included."""
    text = "a: |\n  canary.one: true\n\n  port: 4242\nb: 'canary\n  port: 7'\nport: 8\n"
    made = "\n".join(diff.redacted_diff("x.yaml", b"", text.encode()))

    assert "canary" not in made
    assert "4242" not in made
    assert "port: 7" not in made
    assert "+port: 8" in made


def test_few_are_all_shown() -> None:
    """At the limit, nothing is left out."""
    assert split("a" * MANY, str) == (["a"] * MANY, [])


def test_many_are_counted() -> None:
    """Each kind is cut on its own, and the rest stays in its order."""
    shown, cut = split("a" * (MANY + 1) + "bbb", str)

    assert shown == ["a"] * SHOWN + ["b"] * 3
    assert cut == [("a", MANY + 1 - SHOWN)]


def test_what_has_no_kind_is_always_shown() -> None:
    """For example, a line with a reason of its own."""
    assert split("a" * 100, lambda _: None) == (["a"] * 100, [])


def test_the_receipt_of_an_undo() -> None:
    """An undo of 1184 files shows a few; what went wrong or has notes is shown in full."""
    items = [ItemRecord("undo", "", f"dump_{n}", "", outcome="verified") for n in range(1184)]
    items[700].outcome, items[700].reason = "rolled-back", "the disk is full"
    items[701].notes = ["3 rows were lost"]
    journal = Journal("run", "undo", "/home", "", "2026-01-02T03:04:05", items=items)

    shown = ["".join(text for text, _ in line.spans) for line in receipt_lines(journal, "")]

    assert len(shown) < 20
    assert sum("dump_" in line for line in shown) == SHOWN + 2
    assert "✗ 701/1184 dump_700: rolled back" in shown
    assert "✓ and 1,177 more: restored" in shown
