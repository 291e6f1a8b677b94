"""GW-FD-LIMIT-LOW."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.hermes.supervisors.units import LAUNCHD
from tests.helpers.fake_supervision import ask, codes, unit
from tests.helpers.one_check import ask as look


def test_healthy(home: Path) -> None:
    """No service, one with a high limit, one whose limit is not known."""
    assert look("service-limits", home)[0].status == "skipped"
    assert codes("service-limits", home, unit(home)) == []
    assert codes("service-limits", home, unit(home, settings={"LimitNOFILESoft": ""})) == []


@pytest.mark.parametrize(("limit", "severity"), [("1024", "info"), ("256", "warning")])
def test_low(home: Path, limit: str, severity: str) -> None:
    """systemd's own limit is worth a word; a quarter of it a warning."""
    _, [finding] = ask("service-limits", home, unit(home, settings={"LimitNOFILESoft": limit}))

    assert (finding.code, finding.severity, finding.fix) == (
        "GW-FD-LIMIT-LOW",
        severity,
        "raise-limit",
    )


def test_launchd(home: Path) -> None:
    """launchd allows 256 unless the job says otherwise; no drop-in can change that."""
    job = unit(home, kind=LAUNCHD, name="ai.hermes.gateway")
    _, [finding] = ask("service-limits", home, job)

    assert (finding.severity, finding.fix) == ("warning", None)
    assert codes("service-limits", home, job._replace(declared={"NumberOfFiles": "65536"})) == []
