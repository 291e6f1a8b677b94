"""`probe` beside real gateways: on the machine, in a container, and in a sidecar."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.conftest import need_release
from tests.helpers import support
from tests.helpers.real.containers import IMAGE, Engine, Project, engine, project_of
from tests.helpers.real.gateways import gateway, until
from tests.helpers.real.release_homes import MakeHome
from tests.helpers.real.systemd import need_systemd, systemd

pytestmark = pytest.mark.real
VERSION = "0.19.0"
ROOT = Path(__file__).parents[2]


def answers(home: Path) -> dict[str, bool]:
    """The answer to each question, which is always one line."""
    found = {}
    for question in ("live", "ready", "started"):
        soon = {"hermes_doctor.diagnosis.probes.pulse.LONG": 1.0}
        done = support.doctor("probe", question, "--home", home, settings=soon)
        assert done.out.count("\n") == 1, done
        assert done.err == ""
        found[question] = done.code == 0
    return found


def test_one_life(hermes_home: MakeHome) -> None:
    """A gateway before its start, at work, with a platform that is gone, frozen, and dead."""
    home = hermes_home(VERSION)
    nothing = {"live": False, "ready": False, "started": False}
    assert answers(home) == nothing
    with gateway(VERSION, home) as running:
        assert answers(home) == {"live": True, "ready": True, "started": True}

        with outage(home):
            assert answers(home) == {"live": True, "ready": False, "started": True}

        with running.frozen():
            assert answers(home) == nothing
        running.process.kill()
        running.process.wait()

    assert answers(home) == nothing


@contextlib.contextmanager
def outage(home: Path) -> Iterator[None]:
    """The gateway has written that its platform is not connected."""
    path = home / "gateway_state.json"
    before = path.read_bytes()
    state = json.loads(before)
    for one in state["platforms"].values():
        one["state"] = "retrying"
    support.put(path, json.dumps(state))
    yield
    support.put(path, before)


# -- Docker ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def docker() -> Iterator[Engine]:
    """One engine for all of them."""
    need_release(VERSION)
    with engine() as made:
        yield made


@pytest.fixture
def project(docker: Engine, tmp_path: Path) -> Iterator[Project]:
    """A gateway in a container with the health check of the documentation."""
    made = project_of(docker, tmp_path, VERSION)
    file = made.folder / "compose.yaml"
    text = file.read_text().replace("    volumes: [", f"    volumes: [{MOUNTS}, ")
    words = json.dumps(["CMD", *TOOL, "probe", "live"])
    file.write_text(f"{text}    healthcheck: {{test: {words}, interval: 1s, retries: 2}}\n")
    made.up()
    yield made
    docker.docker("rm", "--force", made.container)


TOOL = [sys.executable, "-P", "-B", "-c", "from hermes_doctor.__main__ import main; main()"]
SHELL_TOOL = shlex.join(["exec", *TOOL]) + ' "$@"'
PAGE = (ROOT / "docs" / "monitoring.md").read_text()
MOUNTS = ", ".join(f"'{one}:{one}:ro'" for one in sorted({str(ROOT), sys.prefix}))


@pytest.mark.wide
@pytest.mark.needs("dockerd")
def test_a_health_check_of_docker(project: Project) -> None:
    """Docker calls the container healthy, and no longer when the gateway stands still."""

    def state() -> str:
        return project.engine.inspect(project.container, "{{.State.Health.Status}}")

    until(lambda: state() == "healthy", "a healthy container")
    pid = int(project.engine.inspect(project.container, "{{.State.Pid}}"))
    os.kill(pid, signal.SIGSTOP)
    try:
        until(lambda: state() == "unhealthy", "an unhealthy container")
    finally:
        os.kill(pid, signal.SIGCONT)

    until(lambda: state() == "healthy", "a healthy container again")


@pytest.mark.wide
@pytest.mark.needs("dockerd")
def test_the_probes_of_kubernetes(project: Project) -> None:
    """The commands of the example, run inside the container as the kubelet does.

    This gateway has no platform, so it is not ready; `test_one_life` has one that is.
    """
    [example] = re.findall(r"```yaml\n(startupProbe:.*?)```", PAGE, re.S)
    probes = yaml.safe_load(example)
    wanted = {"startupProbe": True, "livenessProbe": True, "readinessProbe": False}

    def is_yes(name: str) -> bool:
        first, *words = probes[name]["exec"]["command"]
        assert first == "hermes-doctor"
        return project.engine.run("exec", project.container, *TOOL, *words).returncode == 0

    assert set(probes) == set(wanted)
    for one in probes.values():
        assert set(one) <= {"exec", "periodSeconds", "timeoutSeconds", "failureThreshold"}
    until(lambda: is_yes("startupProbe"), "the end of its start")
    assert {name: is_yes(name) for name in probes} == wanted


@pytest.mark.wide
def test_a_unit_that_waits_for_the_gateway(hermes_home: MakeHome, tmp_path: Path) -> None:
    """The line of the example holds it back until the gateway has started."""
    need_systemd()
    home = hermes_home(VERSION)
    tool = support.put(tmp_path / "bin" / "hermes-doctor", f"#!/bin/sh\n{SHELL_TOOL}\n", 0o755)
    [line] = re.findall(r"^ExecStartPre=.*$", PAGE, re.M)
    unit = "\n".join(
        [
            "[Service]",
            f"Environment=PATH={tool.parent}:/usr/bin:/bin HERMES_HOME={home}",
            line,
            "ExecStart=/bin/sleep 1000",
        ]
    )
    with systemd(tmp_path / "user") as machine:
        machine.install("waits.service", unit)
        machine.systemctl("start", "--no-block", "waits.service")
        until(lambda: machine.show("waits.service", "SubState") == "start-pre", "that it waits")
        with gateway(VERSION, home):
            until(lambda: machine.show("waits.service", "SubState") == "running", "its start")


@pytest.mark.wide
@pytest.mark.needs("dockerd")
def test_a_sidecar_that_shares_the_volume(project: Project) -> None:
    """It sees no process of the gateway, only its files and its API server."""

    def ask(question: str) -> tuple[int, str]:
        volumes = [f"{project.home}:/opt/data:ro", "/usr:/usr:ro"]
        volumes += [one.strip("'") for one in MOUNTS.split(", ")]
        volumes += [f"{one}:{one}:ro" for one in sorted({os.path.realpath(sys.base_prefix)})]
        options = [word for one in volumes for word in ("--volume", one)]
        environment = ["--env", "HERMES_HOME=/opt/data", "--env", "HOME=/opt/data"]
        words = ("run", "--rm", "--network", "none", *options, *environment, IMAGE)
        done = project.engine.run(*words, *TOOL, "probe", question)
        return done.returncode, done.stdout

    until(lambda: (project.home / "state" / "gateway.heartbeat").exists(), "a heartbeat")
    assert ask("live")[0] == 0
    code, said = ask("started")
    assert code == 0, said
    project.engine.docker("stop", project.container)

    assert ask("live") == (1, "not live: no gateway of this home runs\n")
