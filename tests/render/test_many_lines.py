"""Many lines of one kind are cut short, and nothing else is."""

from __future__ import annotations

from hermes_doctor.records.journal import ItemRecord, Journal
from hermes_doctor.render.many_lines import MANY, SHOWN, split
from hermes_doctor.render.repair import receipt_lines


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
