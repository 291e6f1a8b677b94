"""CLOCK-STEP: the clock of the machine jumped after the gateway started."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.model import Gateway
from tests.helpers import support
from tests.helpers.gateway_home import PID, STARTED, Scene, ask


class Jumped(Scene):
    """Probes of a gateway that started an hour earlier, by the clock of that moment."""

    def gateway_running(self) -> list[Gateway]:
        """Return a gateway after whose start the clock jumped."""
        hour = timedelta(hours=1)
        return [Gateway(PID, STARTED - hour, clock_step=hour)]


def pid_file(home: Path, at: float) -> None:
    """Write gateway.pid as if the clock had shown this time."""
    support.put(home / "gateway.pid", f'{{"pid": {PID}}}')
    os.utime(home / "gateway.pid", (at, at))


def test_forward(home: Path) -> None:
    """It is a note: the gateway keeps running."""
    pid_file(home, (STARTED - timedelta(hours=1)).timestamp())

    _, [finding] = ask("clock-step", Jumped(home, {}))

    assert (finding.code, finding.severity) == ("CLOCK-STEP", "info")
    assert finding.title == "the clock jumped forward by 1 h after the start"


def test_back(home: Path) -> None:
    """A gateway cannot have written its file in the future."""
    pid_file(home, STARTED.timestamp() + 4 * 3600 + 60)

    _, [finding] = ask("clock-step", Scene(home, {}))

    assert finding.title.startswith("the clock was set back by ")


@pytest.mark.parametrize("seconds", [0, 2, 3 * 3600])
def test_steady(home: Path, seconds: float) -> None:
    """A file that was written at the start or later says nothing about the clock."""
    pid_file(home, STARTED.timestamp() + seconds)

    assert ask("clock-step", Scene(home, {}))[1] == []


def test_no_pid_file(home: Path) -> None:
    """Without the file there is nothing to compare with."""
    assert ask("clock-step", Scene(home, {}))[1] == []
