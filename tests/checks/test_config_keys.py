"""CFG-UNKNOWN-KEY: slips, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes

ID = "config-keys"
SLIPS = {
    "modle: {default: x}\n": "model",
    "model:\n  defualt: x\n": "default",
    "model:\n  Provider: x\n": "provider",
    "agent:\n  max-turns: 3\n": "max_turns",
    "fallback_providrs: []\n": "fallback_providers",
    "Session_Reset: {mode: daily}\n": "session_reset",
    "telegram:\n  alow_from: [1]\n": "allow_from",
    "platforms:\n  telegram:\n    enabeld: true\n": "enabled",
    "providers:\n  mine:\n    base_ulr: https://x.example/v1\n": "base_url",
    "custom_providers:\n- name: mine\n  bse_url: https://x.example/v1\n": "base_url",
}


@pytest.mark.parametrize("text", SLIPS)
def test_slips(home: Path, text: str) -> None:
    """The key that is meant is named, with the line and a fix that asks."""
    _, [finding] = config_homes.look(config_homes.write(home, text), ID)

    assert (finding.code, finding.severity.value) == ("CFG-UNKNOWN-KEY", "warning")
    assert finding.data["new"] == SLIPS[text]
    assert finding.fix == "rename-key"
    assert finding.evidence[0].where == f"config.yaml:{text.count(chr(10))}"


SILENT = {
    "a plugin's own": "weather: {town: x}\n",
    "what is meant is there, too": "model: {default: x}\nmodle: {default: y}\n",
    "words of the code": "models: {}\nplatform: x\nagent: {model: x}\n",
    "names that people choose": "providers: {opnrouter: {base_url: 'https://x.example'}}\n",
    "too short": "mpc: {}\n",
    "variables": "TELEGRAM_BOT_TOKN: x\n",
    "below a list": "fallback_providers:\n- {provider: x, modle: y}\n",
    "numbers": "1: x\ntrue: y\n",
}


@pytest.mark.parametrize("case", SILENT)
def test_silent(home: Path, case: str) -> None:
    """What may be read by somebody is not called unknown."""
    assert config_homes.look(config_homes.write(home, SILENT[case]), ID)[1] == []


def test_a_key_of_another_release(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that a newer release knows is no slip, and none is suggested that this one lacks."""
    config_homes.Scene(monkeypatch).release("0.13.0")

    assert (
        config_homes.look(config_homes.write(home, "desktop: {}\nplatform_hint: {}\n"), ID)[1] == []
    )


def test_healthy(home: Path) -> None:
    """Ordinary files say nothing."""
    config_homes.silent(home, ID)
