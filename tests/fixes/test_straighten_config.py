"""straighten-config: plain spaces, and values without curly quotes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes, fix_cycle
from tests.helpers.fix_contract import Planted

CASES = {
    "blanks": (
        "model:\n\u00a0\u00a0default: x\n\u3000\u3000provider: y\n# \u00a0\n",
        "config.yaml",
        "model:\n  default: x\n  provider: y\n# \u00a0\n",
    ),
    "quotes": (
        "model:\n  default: “x/y-1”  # “x”\n",
        "model.default",
        "model:\n  default: x/y-1  # “x”\n",
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES)
def test_cures_and_undoes(home: Path, case: str) -> None:
    """Everything else stays."""
    config, subject, after = CASES[case]
    config_homes.write(home, config)

    cured = fix_cycle.cure(home, "CFG-LOOKALIKE", "straighten-config", subject)

    assert (home / "config.yaml").read_text() == after
    cured.undo()


def test_a_guess(home: Path) -> None:
    """What would not parse with spaces is left alone."""
    config_homes.write(home, "a: 1\n\u00a0b: 2\n")

    assert "would not parse" in fix_cycle.refused(home, "CFG-LOOKALIKE")


PLANTED = Planted("CFG-LOOKALIKE", lambda home: config_homes.write(home, CASES["quotes"][0]))
