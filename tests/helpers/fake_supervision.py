"""Run the service checks on services that no test machine has."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CheckResult, Finding, Gateway
from hermes_doctor.diagnosis.examination.report import examine
from hermes_doctor.hermes.supervisors.find import Supervision
from hermes_doctor.hermes.supervisors.units import SYSTEMD_USER, Unit
from tests.helpers.given_answers import GivenAnswers
from tests.helpers.one_check import PLUGINS

NAME = "hermes-gateway.service"


def unit(home: Path, **changes: Any) -> Unit:
    """Return a running user unit with these changes."""
    plain = Unit(
        kind=SYSTEMD_USER,
        name=NAME,
        path=home / NAME,
        home=home,
        pid=None,
        state="active",
        settings={"UnitFileState": "enabled", "Restart": "always", "LimitNOFILESoft": "65536"},
        environment={"HERMES_HOME": str(home)},
        user="alice",
        manager=os.getuid(),
    )
    settings = {**plain.settings, **changes.pop("settings", {})}
    return plain._replace(settings=settings, **changes)


class Told(GivenAnswers):
    """Probes with a given supervisor."""

    def __init__(self, home: Path, units: Sequence[Unit], running: bool, **more: Any) -> None:
        super().__init__(Home(home))
        owner = units[0] if units else None
        plain = Supervision(owner, tuple(units), bool(units), "as told", (), None)
        self.told = plain._replace(**more)
        self.running = [Gateway(os.getpid(), datetime.now(UTC))] if running else []

    def gateway_supervision(self) -> Supervision:
        return self.told

    def gateway_running(self) -> list[Gateway]:
        return self.running


def ask(
    id: str, home: Path, *units: Unit, running: bool = True, **more: Any
) -> tuple[CheckResult, list[Finding]]:
    """Return the result and the findings of a check with these units."""
    checks = [check for check in PLUGINS.checks if check.id == id]
    [result], findings = examine(Told(home, units, running, **more), checks)
    return result, findings


def codes(id: str, home: Path, *units: Unit, **more: Any) -> list[tuple[str, str]]:
    """Return the codes and severities of the findings; the check must not crash."""
    result, findings = ask(id, home, *units, **more)
    assert result.status != "crashed", result.reason
    return [(finding.code, str(finding.severity)) for finding in findings]
