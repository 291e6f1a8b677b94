"""ENV-DUP: a variable on several lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers import config_homes

ID = "env-duplicates"


@pytest.mark.parametrize(
    ("env", "severity"),
    [("A=1\nB=2\nA=3\n", "warning"), ("A=1\nB=2\nA='1'  # the same\n", "info")],
)
def test_found(home: Path, env: str, severity: str) -> None:
    """The lines are named; the last one counts."""
    _, findings = config_homes.look(config_homes.write(home, "{}\n", env), ID)

    assert config_homes.told(findings) == [("ENV-DUP", severity, "A", ".env:1", "comment-out")]
    assert findings[0].evidence[-1].where == ".env:3"


def test_an_empty_one_erases(home: Path) -> None:
    """It is an error that says so; commenting out the key would be the wrong help."""
    env = "OPENROUTER_API_KEY=sk-or-v1-canary\nB=2\nOPENROUTER_API_KEY=\n"

    _, [finding] = config_homes.look(config_homes.write(home, "{}\n", env), ID)

    assert (finding.severity, finding.fix) == ("error", None)
    assert finding.title == ".env line 3 erases OPENROUTER_API_KEY"
    assert "canary" not in repr(finding)


def test_values_are_not_shown(home: Path) -> None:
    """Nor is a name that is more like a key."""
    env = "zQcanaryKx9pLm2Tw=1\nzQcanaryKx9pLm2Tw=zQcanary\n"

    _, [finding] = config_homes.look(config_homes.write(home, "{}\n", env), ID)

    assert re.search(r"\(17-character \w+\)", finding.subject)


def test_healthy(home: Path) -> None:
    """Ordinary files say nothing."""
    config_homes.silent(home, ID)


def test_a_file_that_is_not_utf_8(home: Path) -> None:
    """Hermes reads it as Latin-1."""
    config_homes.write(home, "{}\n", "")
    (home / ".env").write_bytes(b"# gr\xfc\xdfe\nA=1\nB=2\nA=3\n")

    _, findings = config_homes.look(home, ID)

    assert config_homes.told(findings) == [("ENV-DUP", "warning", "A", ".env:2", "comment-out")]
