"""CFG-IGNORED: forms and places that do not count, by release."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes

ID = "config-platforms"
T = config_homes.TOKEN
RESHAPE, RENAME, MOVE = "reshape-platforms", "rename-key", "move-token"
CASES = {
    "list": ("platforms: [telegram]\n", "", ("error", "platforms", 1, RESHAPE)),
    "list of what starts": (
        "platforms: [telegram]\n",
        config_homes.TELEGRAM,
        ("info", "platforms", 1, RESHAPE),
    ),
    "on": ("platforms:\n  telegram: true\n", "", ("error", "platforms.telegram", 2, RESHAPE)),
    "on at the top": ("telegram: true\n", "", ("error", "telegram", 1, RESHAPE)),
    "on and it is": (
        "platforms:\n  telegram: on\n",
        config_homes.TELEGRAM,
        ("info", "platforms.telegram", 2, RESHAPE),
    ),
    "off and it is not": (
        "platforms:\n  telegram: off\n",
        config_homes.TELEGRAM,
        ("warning", "platforms.telegram", 2, RESHAPE),
    ),
    "name": (
        "platforms:\n  telegrm: {enabled: true}\n",
        "",
        ("error", "platforms.telegrm", 2, RENAME),
    ),
    "name of what is off": (
        "platforms:\n  telegrm: {enabled: false}\n",
        "",
        ("warning", "platforms.telegrm", 2, RENAME),
    ),
    "gateway": ("gateway: off\n", "", ("info", "gateway", 1, None)),
    "token at the top": (
        f"telegram:\n  token: {T}\n",
        "",
        ("error", "telegram.token", 2, MOVE),
    ),
    "token at the top beside one in .env": (
        f"telegram:\n  token: {T}\n",
        config_homes.TELEGRAM,
        ("info", "telegram.token", 2, MOVE),
    ),
    "not enabled": (
        f"platforms:\n  telegram:\n    token: {T}\n",
        "",
        ("error", "platforms.telegram", 2, RESHAPE),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_found(home: Path, case: str) -> None:
    """Each is named with its place; what makes no difference is only worth knowing."""
    config, env, (severity, subject, line, fix) = CASES[case]

    _, findings = config_homes.look(config_homes.write(home, config, env), ID)

    where = f"config.yaml:{line}"
    assert config_homes.told(findings) == [("CFG-IGNORED", severity, subject, where, fix)]


@pytest.mark.parametrize(
    ("version", "severity"),
    [("0.13.0", "info"), ("0.14.0", "error"), ("0.18.2", "error"), ("0.19.0", "info")],
)
def test_gateway_by_release(
    home: Path, monkeypatch: pytest.MonkeyPatch, version: str, severity: str
) -> None:
    """Some releases lose all platform settings over it."""
    config_homes.Scene(monkeypatch).release(version)

    _, [finding] = config_homes.look(config_homes.write(home, "gateway: disabled\n"), ID)

    assert finding.severity.value == severity


@pytest.mark.parametrize(
    ("version", "place", "told"),
    [
        ("0.13.0", "platforms", True),
        ("0.16.0", "platforms", False),
        ("0.16.0", "top", True),
        ("0.19.0", "top", False),
    ],
)
def test_off_by_release(
    home: Path, monkeypatch: pytest.MonkeyPatch, version: str, place: str, told: bool
) -> None:
    """Switched off and started all the same: only where this release does so, and by hand."""
    config_homes.Scene(monkeypatch).release(version)
    block = "telegram:\n  enabled: false\n"
    text = block if place == "top" else "platforms: {telegram: {enabled: false}}\n"

    _, findings = config_homes.look(config_homes.write(home, text, config_homes.TELEGRAM), ID)

    assert [(one.severity.value, one.fix) for one in findings] == [("warning", None)] * told


SILENT = {
    "capital letters": f"platforms: {{Telegram: {{enabled: true, token: '{T}'}}}}\n",
    "a stranger": "platforms: {matterbridge: {enabled: true}}\n",
    "the right form": f"platforms: {{telegram: {{enabled: true, token: '{T}'}}}}\n",
    "nothing": "platforms:\ngateway:\ntelegram:\n",
    "on in another place": "telegram: {enabled: true}\nplatforms: {telegram: {enabled: false}}\n",
}


@pytest.mark.parametrize("case", SILENT)
def test_silent(home: Path, case: str) -> None:
    """What counts, and what is not ours to judge."""
    assert config_homes.look(config_homes.write(home, SILENT[case], ""), ID)[1] == []


def test_healthy(home: Path) -> None:
    """Ordinary files say nothing."""
    config_homes.silent(home, ID)
