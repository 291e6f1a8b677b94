"""rename-key: a key, a platform or a list gets the name that is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes, fix_cycle
from tests.helpers.fix_contract import Planted

CASES = {
    "a key": (
        "# top\nmodle:  # mine\n  default: x\n",
        "",
        "CFG-UNKNOWN-KEY",
        "modle",
        "# top\nmodel:  # mine\n  default: x\n",
    ),
    "in quotes": (
        "agent: {'max-turns': 3}\r\n",
        "",
        "CFG-UNKNOWN-KEY",
        "agent.max-turns",
        "agent: {'max_turns': 3}\r\n",
    ),
    "a platform": (
        "platforms:\n  telegrm: {enabled: true}\n",
        "",
        "CFG-IGNORED",
        "platforms.telegrm",
        "platforms:\n  telegram: {enabled: true}\n",
    ),
    "a list": (
        "telegram:\n  allowed_users: [1, 2]  # us\n",
        config_homes.TELEGRAM,
        "CFG-ALLOWLIST-KEY",
        "telegram.allowed_users",
        "telegram:\n  allow_from: [1, 2]  # us\n",
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES)
def test_cures_and_undoes(home: Path, case: str) -> None:
    """Only the name changes."""
    config, env, code, subject, after = CASES[case]
    config_homes.write(home, config, env)

    cured = fix_cycle.cure(home, code, "rename-key", subject)

    assert (home / "config.yaml").read_bytes().decode() == after
    cured.undo()


PLANTED = Planted("CFG-UNKNOWN-KEY", lambda home: config_homes.write(home, *CASES["a key"][:2]))
