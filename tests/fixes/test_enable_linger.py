"""A user whose services end with the login; the act itself is in tests/steps/test_machine.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.model import CannotFix
from tests.helpers.fake_supervision import Told, unit
from tests.helpers.planned_steps import finding, sentences


def test_plan(home: Path) -> None:
    """The owner of the home lingers afterwards; one who does already is left alone."""
    found = finding("GW-LINGER", "enable-linger")
    [said] = sentences(Told(home, [unit(home)], True, linger=False), found)
    assert "loginctl enable-linger" in said
    with pytest.raises(CannotFix, match="enabled already"):
        sentences(Told(home, [unit(home)], True, linger=True), found)
