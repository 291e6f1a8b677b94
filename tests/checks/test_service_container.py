"""DOCKER-S6-DOWN, DOCKER-NO-RESTART and DOCKER-EXEC-PATH."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.diagnosis.examination.report import examine
from hermes_doctor.hermes.supervisors import s6
from hermes_doctor.hermes.supervisors.units import DOCKER, S6, Unit
from tests.helpers import compose_homes, support
from tests.helpers.fake_supervision import ask, codes, unit
from tests.helpers.one_check import PLUGINS, ask as look


def slot(home: Path, status: str) -> Unit:
    """A slot of which s6 says so."""
    plain = unit(home)._replace(kind=S6, name="gateway-default", settings={"NormallyDown": "no"})
    return s6.with_status(plain, status)


def box(home: Path, **settings: str) -> Unit:
    """A container with these words of its engine."""
    return unit(home)._replace(kind=DOCKER, name="hermes", settings=settings)


def test_healthy(home: Path) -> None:
    """No container, or one that is up and started again."""
    assert look("service-container", home)[0].status == "skipped"
    assert codes("service-container", home, slot(home, "up (pid 42) 100 seconds")) == []
    assert codes("service-container", home, box(home, Restart="unless-stopped")) == []
    assert codes("service-container", home, box(home)) == []


@pytest.mark.parametrize(
    "status",
    ["down (exitcode 0) 12 seconds, normally up", "down (signal SIGKILL) 3 seconds, normally up"],
)
def test_slot_down(home: Path, status: str) -> None:
    """The container is up, its gateway is not."""
    _, [finding] = ask("service-container", home, slot(home, status), running=False)

    assert (finding.code, finding.severity, finding.fix) == (
        "DOCKER-S6-DOWN",
        "error",
        "start-gateway",
    )


def test_stopped_on_purpose(home: Path) -> None:
    """The operator stopped it: that is information."""
    support.put(home / "gateway_state.json", '{"desired_state": "stopped"}')
    down = slot(home, "down (exitcode 0) 12 seconds, normally up")

    assert codes("service-container", home, down, running=False) == [("DOCKER-S6-DOWN", "info")]


def test_slot_that_comes_back(home: Path) -> None:
    """Down for a moment, or for its settings' sake, is told elsewhere."""
    for status in (
        "down (exitcode 1) 1 seconds, want up",
        "down (exitcode 78) 9 seconds, normally up",
    ):
        assert codes("service-container", home, slot(home, status), running=False) == []


@pytest.mark.parametrize("project", ["", "bots"])
def test_no_policy(home: Path, project: str) -> None:
    """Nobody starts the container again; one fix serves Compose and plain Docker."""
    settings: dict[str, Any] = {"Restart": "no", "Project": project, "Status": "running"}
    _, [finding] = ask("service-container", home, box(home, **settings))

    assert (finding.code, finding.severity, finding.fix) == (
        "DOCKER-NO-RESTART",
        "warning",
        "configure-container",
    )
    assert finding.data["wanted"] == {"restart": "unless-stopped"}


HERMES = "/opt/hermes/.venv/bin/hermes"


@pytest.mark.parametrize(
    ("files", "reported"),
    [((HERMES,), True), ((HERMES, "/usr/local/bin/hermes"), False), ((), False)],
)
def test_exec_finds_no_hermes(tmp_path: Path, files: tuple[str, ...], reported: bool) -> None:
    """The image has it outside of the PATH that `docker exec` uses."""
    compose_homes.project(tmp_path)
    policy = {"RestartPolicy": {"Name": "always"}}
    unit = compose_homes.container(tmp_path, HostConfig=policy)
    probes = compose_homes.InContainer(tmp_path / "data", unit, files=files)
    checks = [check for check in PLUGINS.checks if check.id == "service-container"]
    _, findings = examine(probes, checks)

    assert [(one.code, one.severity) for one in findings] == (
        [("DOCKER-EXEC-PATH", "info")] if reported else []
    )
    if reported:
        assert f"docker exec -it -u hermes {compose_homes.NAME} {HERMES} …" in findings[0].next
