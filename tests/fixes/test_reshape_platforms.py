"""reshape-platforms: lists and switches become what Hermes reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes, fix_cycle
from tests.helpers.fix_contract import Planted

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
        config_homes.TELEGRAM,
        "telegram",
        "telegram:\n  enabled: false\n",
    ),
    "not enabled": (
        f"platforms:\n  telegram:\n    token: {config_homes.TOKEN}\n",
        "",
        "platforms.telegram",
        f"platforms:\n  telegram:\n    token: {config_homes.TOKEN}\n    enabled: true\n",
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES)
def test_cures_and_undoes(home: Path, case: str) -> None:
    """The platform is switched as it was meant."""
    config, env, subject, after = CASES[case]
    config_homes.write(home, config, env)

    cured = fix_cycle.cure(home, "CFG-IGNORED", "reshape-platforms", subject)

    assert (home / "config.yaml").read_text() == after
    cured.undo()


def test_something_else(home: Path) -> None:
    """A list of numbers names no platform."""
    config_homes.write(home, "platforms: [1, 2]\n")

    assert "names of platforms" in fix_cycle.refused(home, "CFG-IGNORED")


PLANTED = Planted("CFG-IGNORED", lambda home: config_homes.write(home, *CASES["off"][:2]))
