"""mend-session-reset: numbers and words that Hermes understands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import support
from tests.helpers.fix_contract import Planted
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
    before = f"model: acme/x  # mine\nsession_reset:\n  {wrong}  # nightly\n  notify: true\n"
    support.put(home / "config.yaml", before)

    cured = cure(home, "CFG-SESSION-RESET", "mend-session-reset", "config.yaml:3")

    assert (home / "config.yaml").read_text() == before.replace(wrong, right)
    cured.undo()


def test_a_longer_pause(home: Path) -> None:
    """A pause of a minute becomes the default of a day; undone byte for byte."""
    before = "session_reset:\n  mode: idle  # mine\n  idle_minutes: 1  # short\n"
    support.put(home / "config.yaml", support.CONFIG + before)

    cured = cure(home, "CFG-SESSION-RESET", "mend-session-reset", "config.yaml:8")

    after = support.CONFIG + before.replace("1  # short", "1440  # short")
    assert (home / "config.yaml").read_text() == after
    cured.undo()


def test_a_variable_with_a_short_pause(home: Path) -> None:
    """The variable goes, so the time in config.yaml applies."""
    config = support.CONFIG + "session_reset:\n  mode: idle\n  idle_minutes: 600\n"
    support.put(home / "config.yaml", config)
    support.put(home / ".env", "A=1\nSESSION_IDLE_MINUTES=1\nB=2\n")

    cured = cure(home, "CFG-SESSION-RESET", "mend-session-reset", ".env:2")

    assert (home / ".env").read_text() == "A=1\nB=2\n"
    cured.undo()


def test_a_variable(home: Path) -> None:
    """A variable that is no hour goes: Hermes takes its own hour anyway."""
    support.put(home / ".env", "A=1\nSESSION_RESET_HOUR=24\nB=2\n")

    cured = cure(home, "CFG-SESSION-RESET", "mend-session-reset", ".env:2")

    assert (home / ".env").read_text() == "A=1\nB=2\n"
    cured.undo()


WRONG = "model: acme/x\nsession_reset:\n  at_hour: 25\n  notify: true\n"
PLANTED = Planted("CFG-SESSION-RESET", lambda home: support.put(home / "config.yaml", WRONG))
