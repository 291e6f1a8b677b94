"""`probe` beside real gateways: on the machine, in a container, and in a sidecar."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import need_release
from tests.helpers import support
from tests.helpers.real.containers import IMAGE, Engine, Project, engine, project_of
from tests.helpers.real.gateways import gateway, until
from tests.helpers.real.release_homes import MakeHome

pytestmark = pytest.mark.real
VERSION = "0.19.0"
ROOT = Path(__file__).parents[2]


def answers(home: Path) -> dict[str, bool]:
    """The answer to each question, which is always one line."""
    found = {}
    for question in ("live", "ready", "started"):
        soon = {"hermes_doctor.probes.pulse.LONG": 1.0}
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
