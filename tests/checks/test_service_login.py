"""GW-LINGER and GW-NO-USER-BUS; with a real systemd in tests/real/test_supervision.py."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.hermes.supervisors.units import SYSTEMD_SYSTEM
from tests.helpers.fake_supervision import ask, codes, unit
from tests.helpers.one_check import ask as look


def test_healthy(home: Path) -> None:
    """No user service, or a user who lingers."""
    assert look("service-login", home)[0].status == "skipped"
    assert codes("service-login", home, unit(home), linger=True) == []
    assert codes("service-login", home, unit(home), linger=None) == []
    machine = unit(home, kind=SYSTEMD_SYSTEM, manager=None)
    assert ask("service-login", home, machine, linger=False)[0].status == "skipped"


def test_linger(home: Path) -> None:
    """A service at work, or one that is to start by itself, needs it."""
    _, [finding] = ask("service-login", home, unit(home), linger=False)

    assert (finding.code, finding.severity, finding.fix) == (
        "GW-LINGER",
        "warning",
        "enable-linger",
    )
    assert finding.data["user"] == "alice"
    off = unit(home, state="inactive", settings={"UnitFileState": "disabled"})
    assert codes("service-login", home, off, linger=False) == []


def test_no_bus(home: Path) -> None:
    """Without its manager the service cannot run; on a machine without systemd that is usual."""
    lost = unit(home, state="inactive", settings={"Manager": "absent"})

    def found(**more: bool) -> list[tuple[str, str]]:
        return codes("service-login", home, lost, linger=True, **more)

    assert found(booted=True, running=False) == [("GW-NO-USER-BUS", "error")]
    assert found(booted=True) == [("GW-NO-USER-BUS", "warning")]
    assert found(booted=False) == []
