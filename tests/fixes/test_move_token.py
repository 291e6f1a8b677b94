"""move-token: the token gets to where it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes, fix_cycle
from tests.helpers.fix_contract import Planted

T = f"12345678:{fix_cycle.SECRET}_abcdefghijklmnop"
CASES = {
    "at the top": (
        f"telegram:\n  token: {T}\n  reactions: true\n",
        "A=1\n",
        "telegram.token",
        ("telegram:\n  reactions: true\n", f"A=1\nTELEGRAM_BOT_TOKEN={T}\n"),
    ),
    "a reference": (
        "telegram:\n  token: ${MINE}\n  reactions: true\n",
        f"MINE={T}\n",
        "telegram.token",
        ("telegram:\n  reactions: true\n", f"MINE={T}\nTELEGRAM_BOT_TOKEN={T}\n"),
    ),
    "not needed": (
        f"telegram:\n  token: {T}\n  reactions: true\n",
        config_homes.TELEGRAM,
        "telegram.token",
        ("telegram:\n  reactions: true\n", config_homes.TELEGRAM),
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES)
def test_cures_and_undoes(home: Path, case: str) -> None:
    """It is in .env, out of config.yaml, and in no output."""
    config, env, subject, after = CASES[case]
    config_homes.write(home, config, env)

    cured = fix_cycle.cure(home, "CFG-IGNORED", "move-token", subject)

    assert ((home / "config.yaml").read_text(), (home / ".env").read_text()) == after
    cured.undo()


def test_a_reference_to_nothing(home: Path) -> None:
    """There is no token to move."""
    config_homes.write(home, "telegram:\n  token: ${NOWHERE}\n", "")

    assert "is not set" in fix_cycle.refused(home, "CFG-IGNORED")


PLANTED = Planted("CFG-IGNORED", lambda home: config_homes.write(home, *CASES["at the top"][:2]))
