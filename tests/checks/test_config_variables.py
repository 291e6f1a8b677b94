"""CFG-UNRESOLVED: variables in config.yaml that nobody fills in."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.examination import examine
from hermes_doctor.model import Severity
from tests import judging
from tests.provider_mistakes import MISTAKES

CODES = ("CFG-UNRESOLVED",)


@pytest.mark.parametrize(("name", "version"), judging.fitting(*CODES))
def test_found(tmp_path: Path, name: str, version: str) -> None:
    """Every mistake is found for what it is, under every release that makes one of it."""
    judging.found(tmp_path, name, version)


def test_healthy(tmp_path: Path) -> None:
    """Ordinary homes show nothing of it under any release."""
    judging.is_silent(tmp_path, *CODES)


@pytest.mark.parametrize(
    ("given", "severities"),
    [({"PATH": "/bin"}, [Severity.ERROR]), ({"NOWHERE": "sk-1234"}, [])],
)
def test_what_the_service_gives(
    tmp_path: Path, given: dict[str, str], severities: list[Severity]
) -> None:
    """A variable of the service is set; where the service has none either, it is an error."""
    home = judging.write(tmp_path / "home", MISTAKES["a variable that is not set"])
    checks = [check for check in judging.LOADED.checks if check.id == "config-variables"]

    _, findings = examine(judging.Given(home, given), checks)

    assert [one.severity for one in findings] == severities
