"""Definitions that lead nowhere, fight, or are another home's."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hermes_doctor.hermes.supervisors.units import SYSTEMD_SYSTEM
from tests.helpers.fake_supervision import NAME, ask, codes, unit
from tests.helpers.one_check import ask as look

GOOD = (sys.executable, "-m", "hermes_cli.main", "gateway", "run")


def test_healthy(home: Path) -> None:
    """No service, or one that starts what is there."""
    assert look("service-definition", home)[0].status == "skipped"
    assert codes("service-definition", home, unit(home, program=GOOD, folder=home)) == []


@pytest.mark.parametrize("state", ["active", "failed"])
def test_gone(home: Path, state: str) -> None:
    """Program and folder are gone: an error, a warning while the gateway still runs."""
    gone = home / "venv/bin/python"
    broken = unit(home, program=(str(gone), *GOOD[1:]), folder=home / "nowhere", state=state)

    _, [finding] = ask("service-definition", home, broken)

    assert finding.code == "GW-UNIT-BAD-PATH"
    assert finding.severity == ("warning" if state == "active" else "error")
    assert [one.where for one in finding.evidence] == [str(gone), str(home / "nowhere")]


@pytest.mark.parametrize("kind", ["link", "folder", "text"])
def test_cannot_be_run(home: Path, kind: str) -> None:
    """A link to a Python that was removed, a folder, a file that is no program."""
    path = home / "python"
    if kind == "link":
        path.symlink_to(home / "gone")
    elif kind == "folder":
        path.mkdir()
    else:
        path.touch(0o644)

    _, [finding] = ask("service-definition", home, unit(home, program=(str(path),), state="failed"))

    assert finding.code == "GW-UNIT-BAD-PATH"
    assert ("link" in finding.evidence[0].what) is (kind == "link")


def test_systemd_says_so(home: Path) -> None:
    """What is there now, but could not be started, is told by its status."""
    refused = unit(home, program=GOOD, state="failed", settings={"ExecMainStatus": "203"})

    assert codes("service-definition", home, refused) == [("GW-UNIT-BAD-PATH", "error")]


def test_two(home: Path) -> None:
    """Two that may start: a warning; two at work: an error; one switched off: nothing."""
    first = unit(home, program=GOOD)
    idle = first._replace(kind=SYSTEMD_SYSTEM, state="inactive", manager=None)
    off = idle._replace(settings={"UnitFileState": "disabled"})

    assert codes("service-definition", home, first, idle) == [("GW-DUP-UNITS", "warning")]
    at_work = idle._replace(state="activating")
    assert codes("service-definition", home, first, at_work) == [("GW-DUP-UNITS", "error")]
    assert codes("service-definition", home, first, off) == []


def test_another_home(home: Path, tmp_path: Path) -> None:
    """The service that bears this home's name works elsewhere; one of another name may."""
    other = unit(tmp_path / "other")
    more = {"others": (other,), "running": False}

    assert codes("service-definition", home, usual=NAME, **more) == [
        ("GW-HOME-MISMATCH", "warning")
    ]
    assert codes("service-definition", home, usual="hermes-gateway-x.service", **more) == []
    assert codes("service-definition", home, usual=NAME, others=(other,)) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root sees everything")
def test_closed(home: Path) -> None:
    """What cannot be seen is unknown."""
    closed = home / "closed"
    closed.mkdir(mode=0)

    result, _ = ask("service-definition", home, unit(home, program=(str(closed / "python"),)))

    assert result.status == "unknown"
