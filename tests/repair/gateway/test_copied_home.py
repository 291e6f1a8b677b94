"""A home that was copied while its gateway ran: that gateway is left alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.hermes.installation.find import Installation
from hermes_doctor.hermes.supervisors.find import Supervision
from hermes_doctor.repair.gateway import control
from hermes_doctor.repair.gateway.detached import Detached
from tests.helpers import support
from tests.helpers.fake_managers import Straw, straw
from tests.helpers.given_answers import GivenAnswers
from tests.helpers.real.gateways import end

RELEASE = Installation("0.19.0", Path("/opt/hermes"), running=False)


@pytest.fixture
def original(tmp_path: Path) -> Iterator[tuple[Straw, subprocess.Popen[bytes]]]:
    """A gateway that runs."""
    made = straw(tmp_path)
    process = made.start()
    yield made, process
    end(process)


def copied(made: Straw, tmp_path: Path) -> Home:
    """Its home, copied while it runs."""
    return Home(Path(shutil.copytree(made.home.path, tmp_path / "copy")).resolve())


class Seen(GivenAnswers):
    """Probes with a release and nobody who looks after it."""

    release = RELEASE

    def hermes_installation(self) -> Installation:
        return self.release

    def gateway_supervision(self) -> Supervision:
        return Supervision(None, (), False, "", (), None)


def test_copied_home(original: tuple[Straw, subprocess.Popen[bytes]], tmp_path: Path) -> None:
    """Hermes would take the original's gateway for its own: nothing is started beside it."""
    made, process = original
    home = copied(made, tmp_path)
    with pytest.raises(CannotFix, match=f"process {process.pid}, the gateway of another"):
        control.gateway_control(Seen(home))
    with pytest.raises(CannotFix, match="gateway of another home"):
        Detached(home, None).start(5)
    assert process.poll() is None
    said = json.loads((home / "gateway_state.json").read_text())
    for changes in ({"gateway_state": "stopped"}, {"start_time": 1}, {"pid": os.getpid()}):
        support.put(home / "gateway_state.json", json.dumps({**said, **changes}))
        with pytest.raises(CannotFix, match="no Python"):
            control.gateway_control(Seen(home))


def test_copied_home_of_an_old_release(
    original: tuple[Straw, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """One that believes only a lock starts beside it."""
    probes = Seen(copied(original[0], tmp_path))
    probes.release = RELEASE._replace(version="0.16.0")
    with pytest.raises(CannotFix, match="no Python"):
        control.gateway_control(probes)
