"""CFG-ALLOWLIST-KEY: lists under a key that is not read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes, support

ID = "config-allowlists"
SLACK = "SLACK_BOT_TOKEN=xoxb-1234567890\nSLACK_APP_TOKEN=xapp-1234567890\n"
MATRIX = "MATRIX_HOMESERVER=https://m.example\nMATRIX_ACCESS_TOKEN=abcdefgh\n"
CASES = {
    "telegram": ("telegram:\n  allowed_users: [1, 2]\n", config_homes.TELEGRAM, "rename-key"),
    "matrix": ("matrix:\n  allow_from: ['@a:b.example']\n", MATRIX, "rename-key"),
    "slack": ("slack:\n  allow_from: [U1]\n", SLACK, "move-list"),
    "slack's other": ("slack:\n  allowed_users: U1,U2\n", SLACK, "move-list"),
}


@pytest.mark.parametrize("case", CASES)
def test_found(home: Path, case: str) -> None:
    """The list is named with its line, and the fix that puts it where it counts."""
    config, env, fix = CASES[case]
    name = f"{case.split(chr(39))[0]}.{config.split()[1].rstrip(':')}"

    _, findings = config_homes.look(config_homes.write(home, config, env), ID)

    told = [("CFG-ALLOWLIST-KEY", "error", name, "config.yaml:2", fix)]
    assert config_homes.told(findings) == told


def test_approved_by_pairing(home: Path) -> None:
    """Users whom a pairing code approved get answers without the list."""
    support.put(home / "pairing" / "telegram-approved.json", '{"1": {}}')

    config_homes.write(home, "telegram:\n  allowed_users: [1]\n", config_homes.TELEGRAM)
    _, [finding] = config_homes.look(home, ID)

    assert finding.severity == "info"
    assert "nothing is broken" in finding.detail


SILENT = {
    "it counts": ("telegram: {allow_from: [1]}\n", config_homes.TELEGRAM),
    "they are let in anyway": (
        "telegram: {allowed_users: [1]}\n",
        config_homes.TELEGRAM + "TELEGRAM_ALLOWED_USERS=1,2\n",
    ),
    "everybody is": (
        "telegram: {allowed_users: [1]}\n",
        config_homes.TELEGRAM + "TELEGRAM_ALLOW_ALL_USERS=true\n",
    ),
    "nobody set it up": ("telegram: {allowed_users: [1]}\n", ""),
    "matrix": ("matrix: {allowed_users: ['@a:b.example']}\n", MATRIX),
}


@pytest.mark.parametrize("case", SILENT)
def test_silent(home: Path, case: str) -> None:
    """Nobody is kept out."""
    assert config_homes.look(config_homes.write(home, *SILENT[case]), ID)[1] == []


def test_healthy(home: Path) -> None:
    """Ordinary files say nothing."""
    config_homes.silent(home, ID)
