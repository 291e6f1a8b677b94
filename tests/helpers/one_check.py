"""Run one check on one home, in this process."""

from __future__ import annotations

import contextlib
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CheckResult, Finding
from hermes_doctor.diagnosis.examination.report import examine
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.probes.probes import Probes

PLUGINS = load.load()


def ask(id: str, home: Path, *, deep: bool = False) -> tuple[CheckResult, list[Finding]]:
    """Return the result and the findings of one check."""
    checks = [check for check in PLUGINS.checks if check.id == id]
    with contextlib.closing(Probes(Home(home), deep=deep)) as probes:  # or it stays a holder
        [result], findings = examine(probes, checks)
    return result, findings


def codes(home: Path, *, deep: bool = False) -> list[str]:
    """Return the codes that all database checks find, without those of severity info."""
    checks = [check for check in PLUGINS.checks if check.group == "databases"]
    with contextlib.closing(Probes(Home(home), deep=deep)) as probes:
        results, findings = examine(probes, checks)
    assert not [result for result in results if result.status == "crashed"], results
    return [finding.code for finding in findings if finding.severity != "info"]
