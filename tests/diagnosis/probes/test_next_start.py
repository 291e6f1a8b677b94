"""When a gateway that fails again and again is started next, and by what."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Gateway
from hermes_doctor.diagnosis.probes import next_start
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.processes.runtime_files import GatewayLife
from hermes_doctor.hermes.supervisors.units import DOCKER, SYSTEMD_USER, Unit


@pytest.mark.parametrize(
    ("ages", "seconds"),
    [([0] * 5, 0), ([0] * 6, 10), ([0] * 8, 40), ([0] * 30, 300), ([121] * 5 + [0] * 5, 0)],
)
def test_hermes_counts_its_starts(ages: list[int], seconds: float) -> None:
    """As `record_start_and_check_storm` of Hermes 0.19 does."""
    now = datetime.now(UTC)
    starts = [now - timedelta(seconds=age) for age in ages]
    assert next_start.hermes_delay(starts, 5, 120.0) == seconds
    assert next_start.hermes_delay(starts, 0, 120.0) == 0, "switched off"


@pytest.mark.parametrize(
    ("values", "variables", "limits"),
    [
        ({}, {}, (5, 120.0)),
        ({"max_starts": 3, "window_seconds": 60}, {}, (3, 60)),
        ({"max_starts": 3}, {"HERMES_GATEWAY_MAX_STARTS": "9"}, (9, 120.0)),
        ({}, {"HERMES_GATEWAY_MAX_STARTS": "--5"}, (5, 120.0)),
        ({}, {"HERMES_GATEWAY_START_WINDOW_S": "30"}, (5, 30.0)),
        ({"window_seconds": 60}, {"HERMES_GATEWAY_START_WINDOW_S": "x"}, (5, 60)),
    ],
)
def test_limits_of_starts(
    values: Mapping[str, int], variables: Mapping[str, str], limits: tuple[int, float]
) -> None:
    """Variables win over config.yaml; Hermes ignores those that are not numbers."""
    assert next_start.limits(values, variables) == limits


def unit(kind: str, state: str, **settings: str) -> Unit:
    return Unit(kind, "one", None, None, None, state, settings, {}, None)


NOW = "now"
"""Replaced by the time of the test, as systemd writes it."""


@pytest.mark.parametrize(
    ("kind", "state", "settings", "what"),
    [
        (SYSTEMD_USER, "inactive", {}, None),
        (SYSTEMD_USER, "failed", {}, None),
        (SYSTEMD_USER, "activating", {"SubState": "start-pre"}, "systemd is starting it"),
        (
            SYSTEMD_USER,
            "activating",
            {
                "SubState": "auto-restart",
                "RestartUSec": "30s",
                "StateChangeTimestampMonotonic": NOW,
            },
            "systemd restarts it in ",
        ),
        (DOCKER, "activating", {"NRestarts": "2"}, "Docker restarts it within 1 s"),
        (DOCKER, "activating", {"NRestarts": "50"}, "Docker restarts it within 60 s"),
    ],
)
def test_what_a_supervisor_does_next(
    kind: str, state: str, settings: Mapping[str, str], what: str | None
) -> None:
    """Nothing for a unit that was stopped or given up, else when it tries again."""
    now = str(int(time.monotonic() * 1e6))
    settings = {name: now if value == NOW else value for name, value in settings.items()}
    found = next_start._of_supervisor(unit(kind, state, **settings))
    assert found is None if what is None else found is not None and found.what.startswith(what)


def lives(*spans: tuple[float, float]) -> list[GatewayLife]:
    """Lives that began and ended so many seconds ago."""
    now = datetime.now(UTC)
    at = [(now - timedelta(seconds=one), now - timedelta(seconds=two)) for one, two in spans]
    return [GatewayLife(7, one, two, "failed") for one, two in at]


@pytest.mark.parametrize(
    ("spans", "loops"),
    [
        (((30, 27), (22, 19), (14, 2)), True),
        (((30, 27), (22, 19)), False),  # it may have been tried twice by hand
        (((130, 127), (122, 119), (114, 102)), False),  # it would have come back by now
        (((3000, 30), (22, 19), (14, 2)), False),  # one of them has worked
    ],
    ids=["it goes on", "too few", "it has ended", "a long life"],
)
def test_a_loop_that_nobody_can_see(spans: tuple[tuple[float, float], ...], loops: bool) -> None:
    """A loop in a shell is known only by its regular starts."""
    found = next_start._of_loop(lives(*spans))
    assert (found is not None) == loops
    if found is not None:
        assert found.what.startswith("something starts it again in ")
        ended_by_hand = [one._replace(how="clean") for one in lives(*spans)[:1]]
        assert next_start._of_loop(ended_by_hand + lives(*spans)[1:]) is None


@pytest.mark.parametrize(("minutes", "starts"), [(1, True), (60, False)])
def test_a_gateway_without_its_lock(
    home: Path, monkeypatch: pytest.MonkeyPatch, minutes: int, starts: bool
) -> None:
    """It is starting, but not for an hour: such a one runs, and its lock is gone."""
    began = datetime.now(UTC) - timedelta(minutes=minutes)
    probes = Probes(Home(home))
    monkeypatch.setattr(probes.gateway, "running", lambda: [Gateway(os.getpid(), began, "test")])
    monkeypatch.setattr(next_start, "holds_lock_in", lambda pid, path: False)

    found = next_start.find(probes.machine, probes.gateway, probes.settings)

    assert (found is not None) is starts
