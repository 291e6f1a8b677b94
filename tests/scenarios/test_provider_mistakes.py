"""Every mistake in the settings of a provider is found for what it is; ordinary homes show none."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.diagnosis.examination.report import examine
from tests.helpers import settings_verdicts, support
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


@pytest.mark.parametrize("seen", ["nothing", "a container", "a shell"])
@pytest.mark.parametrize(
    ("check", "name", "variable"),
    [
        ("provider-key", "no key is set", "MY_KEY"),
        ("provider-key", "nothing but a platform", "OPENROUTER_API_KEY"),
        ("config-variables", "a variable that is not set", "NOWHERE"),
    ],
)
def test_what_could_set_a_variable(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    check: str,
    name: str,
    variable: str,
    seen: str,
) -> None:
    """An error if nothing exists that could set it; else a warning that says so."""
    home = settings_verdicts.write(tmp_path / "home", MISTAKES[name])
    if seen == "a container":
        support.put(home / "logs" / "container-boot.log", "")
    elif seen == "a shell":
        monkeypatch.setenv(variable, "something")

    _, findings = examine(
        settings_verdicts.Seen(home, "0.19.0"),
        [one for one in settings_verdicts.LOADED.checks if one.id == check],
    )

    assert {str(one.severity) for one in findings} == {"error" if seen == "nothing" else "warning"}
    assert all(("service" in one.detail) is (seen != "nothing") for one in findings)
