"""Every mistake in the settings of a provider is found for what it is; ordinary homes show none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import settings_verdicts
from tests.helpers.provider_mistakes import MISTAKES

CODES = sorted({mistake.code for mistake in MISTAKES.values()})


@pytest.mark.parametrize(("name", "version"), settings_verdicts.fitting(*CODES))
def test_found(tmp_path: Path, name: str, version: str) -> None:
    """Under every release that makes a mistake of it."""
    settings_verdicts.found(tmp_path, name, version)


def test_healthy(tmp_path: Path) -> None:
    """Under any release."""
    settings_verdicts.is_silent(tmp_path, *CODES)


@pytest.mark.parametrize(
    ("name", "check", "variable"),
    [
        ("a variable that is not set", "config-variables", "NOWHERE"),
        ("no key is set", "provider-key", "MY_KEY"),
    ],
)
def test_what_the_service_gives(tmp_path: Path, name: str, check: str, variable: str) -> None:
    """What the service sets is set; where the service does not either, it is surely missing."""
    home = settings_verdicts.write(tmp_path / "home", MISTAKES[name])

    assert settings_verdicts.severities(home, check, {"PATH": "/bin"}) == ["error"]
    assert settings_verdicts.severities(home, check, {variable: "sk-1234"}) == []
