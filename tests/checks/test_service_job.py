"""GW-LAUNCHD-EIO and GW-LAUNCHD-OLD-PLIST, on what launchctl prints."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.hermes.supervisors.units import LAUNCHD, Unit
from tests.helpers.fake_supervision import codes, unit
from tests.helpers.one_check import ask as look


def job(home: Path, kept: str = "yes", loaded: str = "yes") -> Unit:
    """A job with these words."""
    plain = unit(home)._replace(kind=LAUNCHD, name="ai.hermes.gateway", manager=None)
    return plain._replace(settings={"Loaded": loaded}, declared={"KeepAlive": kept})


def test_healthy(home: Path) -> None:
    """No job, or one that is loaded and kept alive."""
    assert look("service-job", home)[0].status == "skipped"
    assert codes("service-job", home, job(home)) == []


def test_not_loaded(home: Path) -> None:
    """Its file is there, launchd has not taken it."""
    lost = job(home, loaded="no")

    assert codes("service-job", home, lost, running=False) == [("GW-LAUNCHD-EIO", "error")]
    assert codes("service-job", home, lost) == [("GW-LAUNCHD-EIO", "warning")]


def test_old(home: Path) -> None:
    """The file of an older release leaves a gateway down that ended cleanly."""
    old = job(home, kept="unless-clean")

    assert codes("service-job", home, old) == [("GW-LAUNCHD-OLD-PLIST", "warning")]
