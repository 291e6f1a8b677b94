"""A Hermes in a container: its image is written down before an update, and comes back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_doctor.home import Home
from hermes_doctor.updating import images
from hermes_doctor.updating.records import Records
from tests import support
from tests.updating.engine import NEW, OLD, Engine

UPDATE = ("docker", "compose", "up", "-d", "--pull", "always")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A healthy home."""
    return support.healthy(tmp_path / "home")


def doctor(home: Path, engine: Engine, *words: str) -> support.Done:
    """The command on the host of the container."""
    command, *more = words
    env = {
        "PATH": f"{engine.bin}:{os.environ['PATH']}",
        "DOCKER_HOST": "unix:///nowhere",
        "HERMES_DOCTOR_SETTLE": "0",
    }
    return support.doctor(command, "--home", home, *more, env=env)


def test_there_and_back(home: Path, tmp_path: Path) -> None:
    """The image gets its name back, Compose makes the container anew, and then the data comes."""
    engine = Engine(tmp_path)
    assert doctor(home, engine, "update-guard", "--", *UPDATE).code in (0, 1)
    assert engine.image == NEW
    (home / "config.yaml").write_text("model: {}\n# by the new release\n")
    update = Records(Home(home)).last()
    assert update is not None
    assert update.before is not None
    assert (update.before.kind, update.before.revision) == ("image", OLD)
    assert update.after is not None
    assert update.after.revision == NEW

    done = doctor(home, engine, "rollback", "--yes")

    assert done.code == 0, done.err
    assert engine.image == OLD
    assert "by the new release" not in (home / "config.yaml").read_text()
    [made] = [one for one in engine.held["asked"] if one[0] == "compose" and "never" in one]
    assert made == [
        *("compose", "--project-name", "chat", "--project-directory", "/srv/chat"),
        *("--file", "/srv/chat/compose.yaml", "--file", "/srv/chat/more.yaml"),
        *("up", "--no-start", "--no-deps", "--no-build", "--pull", "never", "gateway"),
    ]
    assert doctor(home, engine, "rollback", "--yes").code == 2, "it is back already"


@pytest.mark.parametrize(
    ("command", "commands"),
    [(("ps",), []), (("pull", "hermes:latest"), [["tag", OLD, "hermes:latest"]])],
)
def test_the_container_is_the_same(
    home: Path, tmp_path: Path, command: tuple[str, ...], commands: list[list[str]]
) -> None:
    """It need not be made anew; but a name that was pulled would exchange it the next time."""
    engine = Engine(tmp_path)
    doctor(home, engine, "update-guard", "--", "docker", *command)
    done = doctor(home, engine, "rollback", "--yes")

    assert done.code == 0, done.err
    assert engine.held["tags"] == {"hermes:latest": f"sha256:{OLD}"}
    assert [one for one in engine.held["asked"] if one[0] in ("tag", "compose")] == commands


@pytest.mark.parametrize(
    ("options", "then", "why"),
    [
        ({"compose": False}, (), "made by hand"),
        ({"composes": False}, (), "docker has no Compose here"),
        ({}, ("rmi", OLD), "is not there any more"),
        ({}, ("set", "hermes:v2"), "is made from hermes:v2 by now, and was from hermes:latest"),
    ],
)
def test_what_takes_a_person(
    home: Path, tmp_path: Path, options: dict[str, bool], then: tuple[str, ...], why: str
) -> None:
    """It says what to do, with the command for the data, and changes nothing."""
    engine = Engine(tmp_path, **options)
    doctor(home, engine, "update-guard", "--", *UPDATE)
    if then:
        doctor(home, engine, "update-guard", "--force", "--", "docker", *then)
        first = Records(Home(home)).ids()[0]
    update = Records(Home(home)).load(Records(Home(home)).ids()[0])
    before = support.contents(home)

    done = doctor(home, engine, "rollback", *([first] if then else []), "--yes")

    text = " ".join(done.err.split())
    assert done.code == 2, done.err
    assert why in text
    assert f"hermes-doctor backup restore {update.backup}" in text
    assert support.contents(home) == before
    assert "never" not in [word for one in engine.held["asked"] for word in one]


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        (UPDATE, True),
        (("/usr/bin/docker", "pull", "hermes"), True),
        (("sudo", "podman", "pull", "hermes"), True),
        (("docker-compose", "pull"), True),
        (("hermes", "update"), False),
        (("sudo",), False),
        ((), False),
    ],
)
def test_is_meant(command: tuple[str, ...], meant: bool) -> None:
    """Which commands are about containers."""
    assert images.is_meant(command) == meant


def test_no_engine(home: Path) -> None:
    """Nothing is made up where nobody can be asked."""
    assert images.of_home(Home(home)) is None
