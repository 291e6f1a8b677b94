"""ENV-PORT: ports that are no numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes

ID = "env-ports"
SERVER = "API_SERVER_ENABLED=true\nAPI_SERVER_KEY=abcdefghijklmnopqrstuvwxyz\n"
WECOM = "WECOM_CALLBACK_CORP_ID=a\nWECOM_CALLBACK_CORP_SECRET=b\n"


@pytest.mark.parametrize("port", ["abc", "0", "70000", "8642/tcp", "-1"])
def test_found(home: Path, port: str) -> None:
    """The variable is named with its line."""
    env = f"{SERVER}API_SERVER_PORT={port}\n"

    _, findings = config_homes.look(config_homes.write(home, "{}\n", env), ID)

    assert config_homes.told(findings) == [
        ("ENV-PORT", "warning", "API_SERVER_PORT", ".env:3", None)
    ]


@pytest.mark.parametrize(
    ("version", "severity"), [("0.13.0", "critical"), ("0.17.0", "critical"), ("0.18.0", "warning")]
)
def test_fatal(home: Path, monkeypatch: pytest.MonkeyPatch, version: str, severity: str) -> None:
    """Some releases do not start over it."""
    config_homes.Scene(monkeypatch).release(version)

    _, [finding] = config_homes.look(
        config_homes.write(home, "{}\n", WECOM + "WECOM_CALLBACK_PORT=x\n"), ID
    )

    assert finding.severity.value == severity


@pytest.mark.parametrize(
    "env", [SERVER + "API_SERVER_PORT=9000\n", "API_SERVER_PORT=abc\n", SERVER]
)
def test_silent(home: Path, env: str) -> None:
    """A number, and a platform that nobody set up."""
    assert config_homes.look(config_homes.write(home, "{}\n", env), ID)[1] == []


def test_healthy(home: Path) -> None:
    """Ordinary files say nothing."""
    config_homes.silent(home, ID)
