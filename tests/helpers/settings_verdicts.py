"""Run the settings checks on a home under a given release, without any Hermes."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Finding, Gateway, Status
from hermes_doctor.diagnosis.examination.report import examine
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.hermes.installation.find import Installation
from hermes_doctor.hermes.knowledge import parse_release
from hermes_doctor.repair.transaction import plan
from tests.helpers import support
from tests.helpers.given_answers import GivenAnswers
from tests.helpers.provider_mistakes import HEALTHY, MISTAKES, Mistake

LOADED = load.load()
VERSIONS = ("0.13.0", "0.16.0", "0.19.0")


class Seen(GivenAnswers):
    """A home with a given installed release."""

    def __init__(self, home: Path, version: str) -> None:
        super().__init__(Home(home))
        self.version = version

    def hermes_installation(self) -> Installation | None:
        return Installation(self.version, Path("/nowhere"), running=False)


class Given(Seen):
    """A gateway that a service starts with given variables."""

    def __init__(self, home: Path, environment: dict[str, str]) -> None:
        super().__init__(home, "0.19.0")
        self.given = environment

    def gateway_running(self) -> list[Gateway]:
        return []

    def gateway_supervision(self) -> Any:
        return SimpleNamespace(owner=SimpleNamespace(environment=self.given))


def write(home: Path, mistake: Mistake) -> Path:
    """Write the home of a mistake to the disk."""
    support.put(home / "config.yaml", mistake.config)
    support.put(home / ".env", mistake.env)
    support.put(home / "auth.json", json.dumps(dict(mistake.store)))
    home.chmod(0o700)
    return home


def look(home: Path, version: str, *codes: str) -> list[Finding]:
    """Return the findings of the settings checks that have these codes."""
    checks = [check for check in LOADED.checks if set(check.codes) & set(codes)]
    checks = [check for check in checks if check.group == "configuration"]
    results, findings = examine(Seen(home, version), checks)
    assert {one.status for one in results} <= {Status.OK, Status.PROBLEM, Status.SKIPPED}, results
    return [one for one in findings if one.code in codes]


def severities(home: Path, check: str, given: dict[str, str]) -> list[str]:
    """Return the severities that one check finds if the service sets these variables."""
    checks = [one for one in LOADED.checks if one.id == check]
    _, findings = examine(Given(home, given), checks)
    return [str(one.severity) for one in findings]


def fitting(*codes: str) -> list[tuple[str, str]]:
    """Return the mistakes with these codes, each with every release in which it is one."""
    return [
        (name, version)
        for name, mistake in MISTAKES.items()
        for version in VERSIONS
        if mistake.code in codes and mistake.fits(parse_release(version))
    ]


def found(tmp_path: Path, name: str, version: str) -> Finding:
    """Return the finding of a mistake, with the right severity and fix and without a secret."""
    mistake = MISTAKES[name]
    findings = look(write(tmp_path / "home", mistake), version, mistake.code)
    assert findings, "not found"
    assert findings[0].severity is mistake.severity, findings[0]
    assert findings[0].fix == mistake.fix, findings[0]
    assert all(one.where and one.what for one in findings[0].evidence)
    assert "canary" not in str([one._replace(data={}) for one in findings])
    assert findings[0].detail
    return findings[0]


def is_silent(tmp_path: Path, *codes: str) -> None:
    """Assert that ordinary homes have none of these codes at warning or above."""
    for number, (name, (config, env)) in enumerate(HEALTHY.items()):
        home = write(tmp_path / f"{number}", Mistake("", config, env))
        for version in VERSIONS:
            worse = [one for one in look(home, version, *codes) if one.severity != "info"]
            assert worse == [], f"{name} under {version}"


def mend(home: Path, version: str, mistake: Mistake) -> None:
    """Apply the planned fix without the command, and assert that the finding is gone."""
    probes = Seen(home, version)
    first = look(home, version, mistake.code)[:1]
    for planned in plan.plan(probes, LOADED, first):
        assert planned.refusal is None, planned.refusal
        for step in planned.steps:
            texts = step.texts()
            assert texts is not None
            (home / texts[0]).write_bytes(texts[2])
    left = {one.key for one in look(home, version, mistake.code) if one.fix}
    assert first[0].key not in left
