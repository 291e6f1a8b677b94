"""mend-env-line: one line of .env as it was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes, fix_cycle
from tests.helpers.fix_contract import Planted

NAME = "TELEGRAM_BOT_TOKEN"
T = f"12345678:{fix_cycle.SECRET}_abcdefghijklmnop"
CASES = {
    "colon": (f"A=1\r\n{NAME}: {T}\r\nB=2\r\n", f"A=1\r\n{NAME}={T}\r\nB=2\r\n"),
    "space": (f"A=1\r\n{NAME} {T}\r\nB=2\r\n", f"A=1\r\n{NAME}={T}\r\nB=2\r\n"),
    "open quote": (f'{NAME}="{T}\nB="2"\n', f'{NAME}="{T}"\nB="2"\n'),
    "two on a line": (f"A=1 {NAME}={T}\r\nB=2", f"A=1\r\n{NAME}={T}\r\nB=2"),
    "two that Hermes parts": (
        f"DISCORD_BOT_TOKEN=abcdef{NAME}={T}\n",
        f"DISCORD_BOT_TOKEN=abcdef\n{NAME}={T}\n",
    ),
    "small letters": (f"export telegram_bot_token = {T}\n", f"export {NAME} = {T}\n"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES)
def test_cures_and_undoes(home: Path, case: str) -> None:
    """Nothing but that line changes, and no value is shown."""
    before, after = CASES[case]
    config_homes.write(home, "{}\n", before)

    cured = fix_cycle.cure(home, "ENV-LINE", "mend-env-line", NAME)

    assert (home / ".env").read_bytes().decode() == after
    cured.undo()


PLANTED = Planted("ENV-LINE", lambda home: config_homes.write(home, "{}\n", CASES["colon"][0]))
