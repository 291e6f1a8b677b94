"""ENV-EXPANDS: variables that multiply each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes

ID = "env-expansion"
DOUBLING = "A0=0123456789\n" + "".join(f"A{n}=${{A{n - 1}}}${{A{n - 1}}}\n" for n in range(1, 40))


def test_found(home: Path) -> None:
    """The line is named at which the limit is passed."""
    _, findings = config_homes.look(config_homes.write(home, "{}\n", DOUBLING), ID)

    assert config_homes.told(findings) == [("ENV-EXPANDS", "error", ".env", ".env:19", None)]


@pytest.mark.parametrize(
    "env",
    [
        "",
        "A=1\nB=${A}${A}\nC=${B}${B}\n",
        "A='${A}${A}'\n",
        f"A={'x' * 1_000_000}\nB=${{A}}${{A}}\n",
    ],
)
def test_silent(home: Path, env: str) -> None:
    """References that do not multiply."""
    assert config_homes.look(config_homes.write(home, "{}\n", env), ID)[1] == []


def test_healthy(home: Path) -> None:
    """Ordinary files say nothing."""
    config_homes.silent(home, ID)
