"""CFG-DEPRECATED: by the release's own list."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import config_homes

ID = "older-settings"
CASES = {
    "key": ("display: {tool_progress_overrides: {}}\n", "", "display.tool_progress_overrides"),
    "summary": ("compression: {summary_model: x}\n", "", "compression.summary_model"),
    "variable": ("{}\n", "MESSAGING_CWD=/srv\n", "MESSAGING_CWD"),
    "beaten": ("agent: {max_turns: 9}\n", "HERMES_MAX_ITERATIONS=60\n", "HERMES_MAX_ITERATIONS"),
}


@pytest.mark.parametrize("case", CASES)
def test_found(home: Path, case: str) -> None:
    """It is worth knowing, with the place."""
    config, env, name = CASES[case]

    _, findings = config_homes.look(config_homes.write(home, config, env), ID)

    where = ".env:1" if name.isupper() else "config.yaml:1"
    assert config_homes.told(findings) == [("CFG-DEPRECATED", "info", name, where, None)]


@pytest.mark.parametrize(
    ("config", "env"),
    [
        ("agent: {max_turns: 60}\n", "HERMES_MAX_ITERATIONS=60\n"),
        ("{}\n", "HERMES_MAX_ITERATIONS=60\nMESSAGING_CWD=\n"),
    ],
)
def test_silent(home: Path, config: str, env: str) -> None:
    """Where both say the same, or it is not set."""
    assert config_homes.look(config_homes.write(home, config, env), ID)[1] == []


def test_an_older_release(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a release does not call deprecated is not."""
    config_homes.Scene(monkeypatch).release("0.13.0")
    text = "display: {tool_progress_overrides: {}}\n"

    assert config_homes.look(config_homes.write(home, text, ""), ID)[1] == []


def test_healthy(home: Path) -> None:
    """Ordinary files say nothing."""
    config_homes.silent(home, ID)
