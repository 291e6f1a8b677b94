"""CFG-LOOKALIKE: blanks and quotes that are letters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes

ID = "config-lookalikes"


def test_blanks(home: Path) -> None:
    """One finding for all of them, with their lines."""
    text = "model:\n\u00a0\u00a0default: x\n\u3000provider: y\n"

    _, findings = config_homes.look(config_homes.write(home, text), ID)

    told = [("CFG-LOOKALIKE", "warning", "config.yaml", "config.yaml:2", "straighten-config")]
    assert config_homes.told(findings) == told
    assert [one.where for one in findings[0].evidence] == ["config.yaml:2", "config.yaml:3"]


@pytest.mark.parametrize("value", ["“x/y-1”", "‘x/y-1’", "«x/y-1»"])
def test_quotes(home: Path, value: str) -> None:
    """The value is named, not shown."""
    _, findings = config_homes.look(config_homes.write(home, f"model:\n  default: {value}\n"), ID)

    told = [("CFG-LOOKALIKE", "error", "model.default", "config.yaml:2", "straighten-config")]
    assert config_homes.told(findings) == told


@pytest.mark.parametrize(
    "text",
    [
        "agent: {environment_hint: “two words”}\n",
        "a: |\n  x\n  \u00a0y\n",
        "a: '“'\n",
        "a: “open\n",
        "名字: 中文\n",
        "model: {provider: “openrouter”}\n",
    ],
)
def test_silent(home: Path, text: str) -> None:
    """Texts of people may hold any of them."""
    assert config_homes.look(config_homes.write(home, text), ID)[1] == []


def test_healthy(home: Path) -> None:
    """Ordinary files say nothing."""
    config_homes.silent(home, ID)
