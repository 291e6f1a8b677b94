"""Help in a narrow terminal."""

from __future__ import annotations

import re

import pytest

from tests.helpers import support


@pytest.mark.parametrize("words", [(), ("backup",), ("hook",), ("watch",), ("backup", "schedule")])
def test_nothing_is_cut(words: tuple[str, ...]) -> None:
    """At 40 columns, summaries and options are wrapped between words, and none is cut."""
    shown = support.doctor(*words, "--help", env={"COLUMNS": "40"}).out

    assert "..." not in shown.replace("ARGS]...", "")
    assert [line for line in shown.splitlines() if len(line) > 40 and "Usage" not in line] == []


@pytest.mark.parametrize("words", [("fix",), ("undo",), ("hook", "install"), ("history",)])
@pytest.mark.parametrize("columns", [60, 70])
def test_examples_and_exit_codes_keep_their_columns(words: tuple[str, ...], columns: int) -> None:
    """At 60 columns they are wrapped between words, below the column that they belong to."""
    wide = support.doctor(*words, "--help", env={"COLUMNS": "80"}).out
    shown = support.doctor(*words, "--help", env={"COLUMNS": str(columns)}).out

    assert shown.split() == wide.split()
    assert [line for line in shown.splitlines() if len(line) > columns] == []
    codes = shown.partition("Exit codes:\n")[2].splitlines()
    assert all(re.match(r" {4}\d{1,3} +\S| {7}\S", line) for line in codes), codes
