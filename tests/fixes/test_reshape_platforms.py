"""reshape-platforms: lists and switches become what Hermes reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import curing, filing

CASES = {
    "list": (
        "platforms:\n  - telegram\n  - discord\n",
        "",
        "platforms",
        "platforms:\n  telegram:\n    enabled: true\n  discord:\n    enabled: true\n",
    ),
    "list with settings": (
        "platforms: [{telegram: {reply_to_mode: all}}]\n",
        "",
        "platforms",
        "platforms:\n  telegram:\n    enabled: true\n    reply_to_mode: all\n",
    ),
    "switch": (
        "platforms:\n  telegram: true  # on\n",
        "",
        "platforms.telegram",
        "platforms:\n  telegram: {enabled: true}  # on\n",
    ),
    "off": (
        "telegram: false\n",
        filing.TELEGRAM,
        "telegram",
        "telegram:\n  enabled: false\n",
    ),
    "not enabled": (
        f"platforms:\n  telegram:\n    token: {filing.TOKEN}\n",
        "",
        "platforms.telegram",
        f"platforms:\n  telegram:\n    token: {filing.TOKEN}\n    enabled: true\n",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_cures_and_undoes(home: Path, case: str) -> None:
    """The platform is switched as it was meant."""
    config, env, subject, after = CASES[case]
    filing.write(home, config, env)

    cured = curing.cure(home, "CFG-IGNORED", "reshape-platforms", subject)

    assert (home / "config.yaml").read_text() == after
    cured.undo()


def test_something_else(home: Path) -> None:
    """A list of numbers names no platform."""
    filing.write(home, "platforms: [1, 2]\n")

    assert "names of platforms" in curing.refused(home, "CFG-IGNORED")
