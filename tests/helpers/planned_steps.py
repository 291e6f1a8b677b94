"""Plan the steps of a fix for a gateway with a fake supervisor."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Finding, Severity
from hermes_doctor.core.system.accounts import Account
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.step import Step
from hermes_doctor.repair.gateway import control
from hermes_doctor.repair.gateway.base import GatewayControl
from hermes_doctor.repair.gateway.service_managers import SystemdManager, SystemdUnit
from tests.helpers.fake_supervision import NAME
from tests.helpers.one_check import PLUGINS


class Steady(SystemdUnit):
    """A unit that can be planned for without systemd."""

    def __init__(self, home: Path, pid: int | None, user: Path, **told: str) -> None:
        who = Account(os.geteuid(), os.getegid(), (), "alice", str(user))
        super().__init__(Home(home), NAME, Mute(who, told))
        self.pid = pid

    def running(self) -> int | None:
        return self.pid

    def refuse(self) -> None:
        return None


class Mute(SystemdManager):
    """A service manager that returns given settings."""

    def __init__(self, user: Account | None, told: dict[str, str]) -> None:
        super().__init__(user)
        self.told = told

    def property_of(self, unit: str, name: str) -> str:
        return self.told.get(name, "")


def owned(monkeypatch: pytest.MonkeyPatch, service: GatewayControl) -> GatewayControl:
    """Let this service control the gateway of every home."""
    monkeypatch.setattr(control, "_of", lambda probes: service)
    return service


def finding(code: str, fix: str, subject: str = "gateway", **data: Any) -> Finding:
    """Return one finding as a check would create it."""
    return Finding(code, Severity.ERROR, f"{code} in a test", subject, fix=fix, data=data)


def plan(probes: Probes, found: Finding) -> list[Step]:
    """Return the steps that its fix plans."""
    fix = PLUGINS.fix(found.fix or "")
    assert fix is not None
    assert found.code in fix.codes
    return list(fix.plan(probes, found))


def sentences(probes: Probes, found: Finding) -> list[str]:
    """Return the steps as the operator reads them."""
    return [step.sentence() for step in plan(probes, found)]
