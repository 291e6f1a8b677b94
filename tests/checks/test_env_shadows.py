"""ENV-SHADOWS-CONFIG: variables that beat config.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes

ID = "env-shadows"
CASES = {
    "a switch": (
        "telegram:\n  require_mention: true\n",
        "TELEGRAM_REQUIRE_MENTION=false\n",
        "telegram.require_mention",
    ),
    "a list": (
        "telegram:\n  allow_from: [1, 2]\n",
        "TELEGRAM_ALLOWED_USERS=1\n",
        "telegram.allow_from",
    ),
    "at the top": ("x: 1\nMY_NAME: a\n", "MY_NAME=b\n", "MY_NAME"),
    "a token": (
        "platforms:\n  telegram: {enabled: true, token: 99999999:zQcanary_abcdefghijklmnop}\n",
        "",
        "platforms.telegram.token",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_found(home: Path, case: str) -> None:
    """Both places are named, the one that counts first."""
    config, more, subject = CASES[case]

    _, findings = config_homes.look(
        config_homes.write(home, config, config_homes.TELEGRAM + more), ID
    )

    line = 2 if more else 1
    told = [("ENV-SHADOWS-CONFIG", "warning", subject, f".env:{line}", "comment-out")]
    assert config_homes.told(findings) == told
    assert findings[0].evidence[1].where == "config.yaml:2"


def test_of_the_process(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable of the service is told and left alone."""
    config_homes.Scene(monkeypatch).started_with({"TELEGRAM_REQUIRE_MENTION": "false"})
    config = "telegram:\n  require_mention: true\n"

    _, [finding] = config_homes.look(config_homes.write(home, config, config_homes.TELEGRAM), ID)

    assert finding.fix is None
    assert "environment of the gateway" in finding.detail


SILENT = {
    "nobody set it up": ("telegram: {require_mention: true}\n", "TELEGRAM_REQUIRE_MENTION=0\n"),
    "the same": (
        "telegram: {require_mention: yes, allow_from: ['2', 1]}\n",
        config_homes.TELEGRAM + "TELEGRAM_REQUIRE_MENTION=1\nTELEGRAM_ALLOWED_USERS=1,2\n",
    ),
    "blank": (
        "telegram: {require_mention: true}\n",
        config_homes.TELEGRAM + "TELEGRAM_REQUIRE_MENTION=\n",
    ),
}


@pytest.mark.parametrize("case", SILENT)
def test_silent(home: Path, case: str) -> None:
    """Where it makes no difference."""
    assert config_homes.look(config_homes.write(home, *SILENT[case]), ID)[1] == []


def test_healthy(home: Path) -> None:
    """Ordinary files say nothing."""
    config_homes.silent(home, ID)
