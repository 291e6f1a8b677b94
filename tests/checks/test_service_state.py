"""Services that gave up or loop; with a real systemd in tests/real/test_supervision.py."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.hermes.supervisors.units import DOCKER, LAUNCHD, S6
from tests.helpers import support
from tests.helpers.fake_supervision import ask, codes, unit
from tests.helpers.one_check import ask as look
from tests.helpers.unit_ends import CRASHED, STOPPED

FAILED: dict[str, Any] = {"state": "failed"}


def test_healthy(home: Path) -> None:
    """Without a service the question does not apply; with one at work there is nothing to say."""
    assert look("service-state", home)[0].status == "skipped"
    assert codes("service-state", home, unit(home)) == []
    often = {"NRestarts": "40", "ExecMainStartTimestampMonotonic": "5000000"}
    assert codes("service-state", home, unit(home, settings=often)) == []


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"ExecMainStatus": "78", "Result": "exit-code"}, "GW-EXIT78"),
        ({"Result": "start-limit-hit"}, "GW-STARTLIMIT"),
        (
            {"Result": "exit-code", "NRestarts": "5", "StartLimitIntervalUSec": "10s"},
            "GW-STARTLIMIT",
        ),
        (
            {"Result": "exit-code", "NRestarts": "5", "StartLimitIntervalUSec": "0"},
            "GW-UNIT-FAILED",
        ),
        ({"Result": "exit-code", "Restart": "no", "ExecMainStatus": "1"}, "GW-UNIT-FAILED"),
        ({"Result": "oom-kill", "Restart": "no"}, "GW-UNIT-FAILED"),
    ],
)
def test_given_up(home: Path, settings: dict[str, str], code: str) -> None:
    """A failed unit, by what its manager says of the end; since when is told."""
    changed = str(round((time.monotonic() - 60) * 1e6))
    told = settings | {"StateChangeTimestampMonotonic": changed}

    _, [finding] = ask("service-state", home, unit(home, settings=told, **FAILED), running=False)

    assert (finding.code, finding.severity) == (code, "error")
    assert finding.since is not None
    assert abs(datetime.now(UTC) - finding.since - timedelta(minutes=1)) < timedelta(seconds=20)


@pytest.mark.parametrize("restart", ["always", "on-failure", "no"])
def test_stopped_on_purpose(home: Path, restart: str) -> None:
    """A gateway that systemd stops ends with status 1, so its unit says failed."""
    stopped = unit(home, settings=STOPPED | {"Restart": restart}, **FAILED)
    assert codes("service-state", home, stopped, running=False) == []

    crashed = unit(home, settings=STOPPED | CRASHED | {"Restart": restart}, **FAILED)
    assert codes("service-state", home, crashed, running=False) == [("GW-UNIT-FAILED", "error")]


@pytest.mark.parametrize("status", ["200", "203"])
def test_never_begun(home: Path, status: str) -> None:
    """What could not be started at all is told by another check."""
    told = unit(home, settings={"ExecMainStatus": status}, **FAILED)

    assert codes("service-state", home, told) == []


@pytest.mark.parametrize(
    ("status", "code"), [("75", "GW-EXIT75-LOOP"), ("1", "GW-CRASH-LOOP"), ("78", "GW-EXIT78")]
)
def test_waits_for_the_next_start(home: Path, status: str, code: str) -> None:
    """Between two starts systemd itself knows enough; a long last life is no loop."""
    settings = {
        "SubState": "auto-restart",
        "NRestarts": "3",
        "ExecMainStatus": status,
        "ExecMainStartTimestampMonotonic": "1000000000",
        "ExecMainExitTimestampMonotonic": "1003000000",
    }
    looping = unit(home, state="activating", settings=settings)
    assert codes("service-state", home, looping, running=False) == [(code, "error")]

    # The same while it runs ExecStopPost; a command that stops it comes before its end.
    settings |= {
        "InactiveExitTimestampMonotonic": "999000000",
        "ActiveExitTimestampMonotonic": "1003000001",
    }
    failed = unit(home, state="deactivating", settings=settings)
    assert codes("service-state", home, failed, running=False) == [(code, "error")]
    settings["ActiveExitTimestampMonotonic"] = "1002000000"
    stopped = unit(home, state="deactivating", settings=settings)
    assert codes("service-state", home, stopped, running=False) == []

    settings["ExecMainExitTimestampMonotonic"] = "9000000000"
    settled = unit(home, state="activating", settings=settings)
    assert codes("service-state", home, settled, running=False) == []


def starts(home: Path, *ago: float) -> None:
    """The gateway's own list of its starts."""
    lines = [f"{time.time() - seconds}\n" for seconds in ago]
    support.put(home / "gateway-starts.log", "".join(lines))


def test_by_its_own_diary(home: Path) -> None:
    """While it is up for a moment, its own notes show the loop."""
    up = unit(home, settings={"NRestarts": "6"})
    starts(home, 50, 40, 30, 20, 10)
    assert codes("service-state", home, up) == [("GW-CRASH-LOOP", "error")]

    starts(home, 900, 800, 700, 650, 10)  # long ago
    assert codes("service-state", home, up) == []
    starts(home, 590, 580, 570, 560, 400)  # it has settled
    assert codes("service-state", home, up) == []
    starts(home, 50, 40, 30, 20, 10)  # by the operator: systemd did not restart it
    assert codes("service-state", home, unit(home)) == []


def test_other_supervisors(home: Path) -> None:
    """Containers and launchd tell of the same."""
    box = unit(home, kind=DOCKER, name="hermes", state="activating", settings={"NRestarts": "9"})
    slot = unit(home, kind=S6, name="gateway-default", settings={"ExecMainStatus": "78"}, **FAILED)
    job = unit(
        home,
        kind=LAUNCHD,
        name="ai.hermes.gateway",
        state="inactive",
        settings={"ExecMainStatus": "78"},
    )

    assert codes("service-state", home, box, running=False) == [("GW-CRASH-LOOP", "error")]
    assert codes("service-state", home, slot, running=False) == [("GW-EXIT78", "error")]
    assert codes("service-state", home, job, running=False) == [("GW-EXIT78", "error")]
