"""Help in a narrow terminal."""

from __future__ import annotations

import pytest

from tests.helpers import support


@pytest.mark.parametrize("words", [(), ("backup",), ("hook",), ("watch",), ("backup", "schedule")])
def test_nothing_is_cut(words: tuple[str, ...]) -> None:
    """At 40 columns, summaries and options are wrapped between words, and none is cut."""
    shown = support.doctor(*words, "--help", env={"COLUMNS": "40"}).out

    assert "..." not in shown.replace("ARGS]...", "")
    assert [line for line in shown.splitlines() if len(line) > 40 and "Usage" not in line] == []
