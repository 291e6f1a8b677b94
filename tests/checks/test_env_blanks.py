"""ENV-BLANK: blank lines that erase a variable of the gateway."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import filing

ID = "env-blanks"


@pytest.mark.parametrize(
    ("name", "severity"), [("TELEGRAM_BOT_TOKEN", "error"), ("MY_OWN", "warning")]
)
@pytest.mark.parametrize("blank", ["", "''", "   # later"])
def test_found(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, severity: str, blank: str
) -> None:
    """The variable is named with both places."""
    filing.Scene(monkeypatch).started_with({name: "zQcanary"})

    _, findings = filing.look(filing.write(home, "{}\n", f"A=1\n{name}={blank}\n"), ID)

    assert filing.told(findings) == [("ENV-BLANK", severity, name, ".env:2", "drop-blank")]


@pytest.mark.parametrize("env", ["X=\n", "TELEGRAM_BOT_TOKEN=other\n", ""])
def test_silent(home: Path, monkeypatch: pytest.MonkeyPatch, env: str) -> None:
    """A blank that erases nothing, and a value that replaces another."""
    filing.Scene(monkeypatch).started_with({"TELEGRAM_BOT_TOKEN": "zQcanary"})

    assert filing.look(filing.write(home, "{}\n", env), ID)[1] == []


def test_healthy(home: Path) -> None:
    """Ordinary files say nothing."""
    filing.silent(home, ID)
