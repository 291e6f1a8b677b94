"""A real container of a real Compose: its restart policy is set, kept by the file, and undone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import need_release
from tests.helpers.real import gateways
from tests.helpers.real.containers import Engine, Project, engine, project_of
from tests.helpers.real.gateways import free_port, sealed

pytestmark = [pytest.mark.real, pytest.mark.wide]
VERSION = "0.19.0"
CODES = ("DOCKER-NO-RESTART", "DOCKER-NO-HEALTHCHECK")
STATE = '{{or .HostConfig.RestartPolicy.Name "no"}} {{.State.StartedAt}}'
"""Compose leaves the name of the policy empty, which is the same as `no`."""


@pytest.fixture(scope="module")
def docker() -> Iterator[Engine]:
    """One engine for all of them."""
    need_release(VERSION)
    with engine() as made:
        yield made


@pytest.fixture
def project(docker: Engine, tmp_path: Path) -> Iterator[Project]:
    """A gateway in a container that Docker does not restart."""
    made = project_of(docker, tmp_path, VERSION)
    file = made.folder / "compose.yaml"
    text = file.read_text().replace("    restart: unless-stopped\n", "    # later: restart\n")
    file.write_text(f"# my bot\n{text}\n# the end\n")
    made.up()
    yield made
    docker.docker("rm", "--force", made.container)


def test_there_and_back(project: Project) -> None:
    """The bot keeps running, `up` keeps the policy, and undo restores file and policy."""
    file = project.folder / "compose.yaml"
    before = file.read_bytes()
    policy, started = project.engine.inspect(project.container, STATE).split()
    assert policy == "no"
    shown = project.doctor("fix", "DOCKER-NO-RESTART")
    assert "+    restart: unless-stopped" in shown.out
    assert f"docker update --restart unless-stopped {project.container}" in shown.out
    assert file.read_bytes() == before

    done = project.doctor("fix", "DOCKER-NO-RESTART", "--apply", "--yes")

    assert done.code == 0, done.out + done.err
    assert "still uses the old files" not in done.out
    assert project.engine.inspect(project.container, STATE).split() == ["unless-stopped", started]
    assert file.read_bytes().replace(b"    restart: unless-stopped\n", b"") == before
    checked = project.doctor("check")
    assert "DOCKER-NO-RESTART" not in checked.out
    assert "DOCKER-NO-RESTART" not in project.doctor("fix").out
    undone = project.doctor("undo", "--yes")
    assert undone.code == 0, undone.out + undone.err
    assert file.read_bytes() == before
    assert project.engine.inspect(project.container, STATE).split() == ["no", started]
    project.doctor("fix", "DOCKER-NO-RESTART", "--apply", "--yes")
    project.up()
    assert project.engine.inspect(project.container, STATE).split()[0] == "unless-stopped"


def test_a_health_check(project: Project) -> None:
    """Two edits of one file in one command; the health check then finds the gateway healthy."""
    file = project.folder / "compose.yaml"
    before = file.read_bytes()
    project.engine.docker("rm", "--force", project.container)
    (project.home / "gateway_state.json").unlink()
    with (project.home / ".env").open("a") as env:
        env.write("".join(f"\n{name}={value}" for name, value in sealed(free_port()).items()))
    project.up()

    done = project.doctor("fix", *CODES, "--apply", "--yes")

    assert done.code == 1, done.out + done.err  # the container is still without a health check
    assert f"cd {project.folder} && docker compose up -d gateway" in done.out
    text = file.read_text()
    assert text.count("restart: unless-stopped") == 1 and text.count("/health") == 1
    noted = project.doctor("check", "-v", "--only", "DOCKER-NO-HEALTHCHECK").out
    assert "has the setting, but the container was created before it" in noted
    file.write_text(text.replace("interval: 60s", "interval: 1s"))
    project.up()
    gateways.until(
        lambda: project.engine.inspect(project.container, "{{.State.Health.Status}}") == "healthy",
        "the container to be healthy",
    )
    assert (
        "DOCKER-" not in project.doctor("check", "-v", "--only", *CODES[1:]).out.partition("\n")[2]
    )
    file.write_text(text)
    while (undone := project.doctor("undo", "--yes")).code == 0:
        assert "restored" in undone.out
    assert file.read_bytes() == before


def test_made_by_docker_run(project: Project) -> None:
    """Without Compose, Docker alone keeps the policy."""
    engine, name = project.engine, project.container
    labels = ["--label-file", "/dev/null"]
    known = engine.inspect(name, "{{range .HostConfig.Binds}}-v {{.}} {{end}}").split()
    variables = engine.inspect(name, "{{range .Config.Env}}-e {{.}} {{end}}").split()
    engine.docker("rm", "--force", name)
    (project.home / "gateway_state.json").unlink()
    engine.docker(
        *("run", "-d", "--name", name, "--network", "host", *labels, *known, *variables),
        "hermes:latest",
    )
    project.wait()

    done = project.doctor("fix", "DOCKER-NO-RESTART", "--apply", "--yes")

    assert done.code == 0, done.out + done.err
    assert engine.inspect(name, STATE).split()[0] == "unless-stopped"
    assert project.doctor("undo", "--yes").code == 0
    assert engine.inspect(name, STATE).split()[0] == "no"
