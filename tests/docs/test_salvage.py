"""docs/salvage.md starts with the text that the benchmark writes into it."""

from __future__ import annotations

from pathlib import Path

from benchmarks import salvage_page

PAGE = Path(__file__).parents[2] / "docs" / "salvage.md"


def test_text() -> None:
    """The next run of the benchmark changes only the results."""
    text, heading, _ = PAGE.read_text(encoding="utf-8").partition("## Results\n")

    assert heading
    assert text.rstrip() == salvage_page.HEAD.read_text(encoding="utf-8").rstrip()
