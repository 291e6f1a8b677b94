"""mend-session-reset: numbers and words that Hermes understands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.fix_cycle import cure


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("at_hour: 25", "at_hour: 4"),
        ("at_hour: '7'", "at_hour: 7"),
        ("idle_minutes: '90'", "idle_minutes: 90"),
        ("mode: idel", "mode: idle"),
    ],
)
def test_mends(home: Path, wrong: str, right: str) -> None:
    """One value changes, the comments stay; undone byte for byte."""
    before = f"model: x  # mine\nsession_reset:\n  {wrong}  # nightly\n  notify: true\n"
    support.put(home / "config.yaml", before)

    cured = cure(home, "CFG-SESSION-RESET", "mend-session-reset", "config.yaml:3")

    assert (home / "config.yaml").read_text() == before.replace(wrong, right)
    cured.undo()


def test_a_variable(home: Path) -> None:
    """A variable that is no hour goes: Hermes takes its own hour anyway."""
    support.put(home / ".env", "A=1\nSESSION_RESET_HOUR=24\nB=2\n")

    cured = cure(home, "CFG-SESSION-RESET", "mend-session-reset", ".env:2")

    assert (home / ".env").read_text() == "A=1\nB=2\n"
    cured.undo()
