"""PROVIDER-KEY and ENV-REDACTED: no key, or something in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.examination import examine
from hermes_doctor.model import Severity
from tests import judging
from tests.provider_mistakes import MISTAKES

CODES = (
    "PROVIDER-KEY",
    "ENV-REDACTED",
)


@pytest.mark.parametrize(("name", "version"), judging.fitting(*CODES))
def test_found(tmp_path: Path, name: str, version: str) -> None:
    """Every mistake is found for what it is, under every release that makes one of it."""
    judging.found(tmp_path, name, version)


def test_healthy(tmp_path: Path) -> None:
    """Ordinary homes show nothing of it under any release."""
    judging.is_silent(tmp_path, *CODES)


@pytest.mark.parametrize(
    ("given", "severities"),
    [({"PATH": "/bin"}, [Severity.ERROR]), ({"MY_KEY": "sk-1234"}, [])],
)
def test_what_the_service_gives(
    tmp_path: Path, given: dict[str, str], severities: list[Severity]
) -> None:
    """A key of the service is one; where the service has none either, it is surely missing."""
    home = judging.write(tmp_path / "home", MISTAKES["no key is set"])
    checks = [check for check in judging.LOADED.checks if check.id == "provider-key"]

    _, findings = examine(judging.Given(home, given), checks)

    assert [one.severity for one in findings] == severities
