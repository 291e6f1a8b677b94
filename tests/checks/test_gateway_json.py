"""CFG-GATEWAY-JSON: what an old file still sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes, support

ID = "gateway-json"
SETS = '{"platforms": {"telegram": {"enabled": true, "token": "zQcanaryKx9pLm2Tw"}}, "stt": {}}'


def test_what_counts(home: Path) -> None:
    """Only what config.yaml does not say, by name."""
    support.put(home / "gateway.json", SETS)
    _, [finding] = config_homes.look(
        config_homes.write(home, "stt: {}\nplatforms: {discord: {}}\n"), ID
    )

    assert (finding.code, finding.severity.value) == ("CFG-GATEWAY-JSON", "info")
    assert finding.evidence[0].what == "only here: platforms.telegram"


@pytest.mark.parametrize(
    ("data", "config"),
    [
        ("{}", "{}\n"),
        (SETS, "platforms: {telegram: {enabled: false}}\nstt: {}\n"),
        ('{"default_reset_policy": {"at_hour": 3}}', "session_reset: {at_hour: 4}\n"),
    ],
)
def test_nothing_counts(home: Path, data: str, config: str) -> None:
    """What config.yaml overrides is no matter."""
    support.put(home / "gateway.json", data)

    assert config_homes.look(config_homes.write(home, config), ID)[1] == []


@pytest.mark.parametrize(
    ("data", "version", "severity"),
    [
        ("{", "0.13.0", "warning"),
        ("[1]", "0.13.0", "critical"),
        ('"x"', "0.18.2", "critical"),
        ("[1]", "0.19.0", "warning"),
    ],
)
def test_no_settings(
    home: Path, monkeypatch: pytest.MonkeyPatch, data: str, version: str, severity: str
) -> None:
    """A list keeps older gateways from starting."""
    config_homes.Scene(monkeypatch).release(version)
    support.put(home / "gateway.json", data)

    _, [finding] = config_homes.look(home, ID)

    assert (finding.subject, finding.severity.value) == ("gateway.json", severity)


def test_healthy(home: Path) -> None:
    """Ordinary files say nothing."""
    config_homes.silent(home, ID)
