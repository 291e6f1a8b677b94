"""write-plainly: both parsers read the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes, fix_cycle
from tests.helpers.fix_contract import Planted

OTHER = "OPENROUTER_API_KEY=sk-or-v1-abcdef\n"
"""What the next message uses."""
NAME = "DEEPSEEK_API_KEY"
K = f"sk-{fix_cycle.SECRET}"
CASES = {
    "comment": (f"A=1\n{NAME}={K}  # mine\nB=2\n", f"A=1\n# mine\n{NAME}={K}\nB=2\n"),
    "comment and quotes": (f"{NAME} = '{K}' # mine\r\n", f"# mine\r\n{NAME} = {K}\r\n"),
    "reference": (f"MINE={K}\n{NAME}=${{MINE}}\n", f"MINE={K}\n{NAME}={K}\n"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES)
def test_cures_and_undoes(home: Path, case: str) -> None:
    """The comment is kept on a line of its own; the value is in no output."""
    before, after = CASES[case]
    config_homes.write(home, "model: {provider: openrouter, default: acme/x}\n", OTHER + before)

    cured = fix_cycle.cure(home, "ENV-AMBIGUOUS", "write-plainly", NAME)

    assert (home / ".env").read_bytes().decode() == OTHER + after
    cured.undo()


def planted(home: Path) -> None:
    """A key with a comment behind it."""
    config = "model: {provider: openrouter, default: acme/x}\n"
    config_homes.write(home, config, OTHER + CASES["comment"][0])


PLANTED = Planted("ENV-AMBIGUOUS", planted)
