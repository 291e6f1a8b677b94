"""ENV-BLANK: blank lines that erase a variable of the gateway."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes

ID = "env-blanks"


@pytest.mark.parametrize(
    ("name", "severity"), [("TELEGRAM_BOT_TOKEN", "error"), ("MY_OWN", "warning")]
)
@pytest.mark.parametrize("blank", ["", "''", "   # later"])
def test_found(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, severity: str, blank: str
) -> None:
    """The variable is named with both places."""
    config_homes.Scene(monkeypatch).started_with({name: "zQcanary"})

    _, findings = config_homes.look(config_homes.write(home, "{}\n", f"A=1\n{name}={blank}\n"), ID)

    assert config_homes.told(findings) == [("ENV-BLANK", severity, name, ".env:2", "drop-blank")]


@pytest.mark.parametrize("env", ["X=\n", "TELEGRAM_BOT_TOKEN=other\n", ""])
def test_silent(home: Path, monkeypatch: pytest.MonkeyPatch, env: str) -> None:
    """A blank that erases nothing, and a value that replaces another."""
    config_homes.Scene(monkeypatch).started_with({"TELEGRAM_BOT_TOKEN": "zQcanary"})

    assert config_homes.look(config_homes.write(home, "{}\n", env), ID)[1] == []


def test_healthy(home: Path) -> None:
    """Ordinary files say nothing."""
    config_homes.silent(home, ID)
