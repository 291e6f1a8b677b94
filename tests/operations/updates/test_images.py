"""A Hermes in a container: its image is written down before an update, for the way back."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hermes_doctor.backup.records.updates import Update, UpdateRecords
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.hermes.installation.details import InstallationDetails
from hermes_doctor.hermes.supervisors import docker
from hermes_doctor.operations.updates import images
from tests.helpers import support
from tests.helpers.fake_engine import NEW, OLD, Engine

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


def last(home: Path) -> Update:
    """The record."""
    found = UpdateRecords(Home(home)).last()
    assert found is not None
    return found


def test_an_image_is_known_by_its_hash(home: Path, tmp_path: Path) -> None:
    """Before and after; and the way back names it, with the command for the data."""
    engine = Engine(tmp_path)
    assert doctor(home, engine, "update-guard", "--", *UPDATE).code == 0
    update = last(home)
    assert update.before is not None
    assert update.after is not None
    assert (update.before.kind, update.before.revision) == ("image", OLD)
    assert update.after.revision == NEW
    before, asked = support.contents(home), len(engine.held["asked"])

    done = doctor(home, engine, "rollback", "--yes")

    text = " ".join(done.err.split())
    assert done.code == 2
    assert engine.held["names"] == {f"hermes-doctor/before:{update.id}": OLD}
    assert f"create it from image hermes-doctor/before:{update.id}" in text
    assert f"hermes-doctor backup restore {update.backup} --home {home}" in text
    assert "Nothing was changed" in text
    assert support.contents(home) == before
    assert {one[0] for one in engine.held["asked"][asked:]} <= {"ps", "inspect", "image"}


def test_the_image_is_the_same(home: Path, tmp_path: Path) -> None:
    """Then only the data comes back."""
    engine = Engine(tmp_path)
    doctor(home, engine, "update-guard", "--", "docker", "ps")
    (home / "config.yaml").write_text("model: {}\n# later\n")

    done = doctor(home, engine, "rollback", "--yes")

    assert done.code == 0, done.err
    assert "# later" not in (home / "config.yaml").read_text()


@pytest.mark.sampled
@pytest.mark.parametrize(
    "forged",
    [
        {"revision": "$(id)"},
        {"source": "a b; id"},
        {"source": "--help"},
        {"where": "container x\x1b[2J"},
        {"version": "1 \x1b[2J"},
    ],
)
def test_words_of_a_record_that_nobody_should_paste(
    home: Path, tmp_path: Path, forged: dict[str, str]
) -> None:
    """A record lies where others may write; what cannot be an image is not repeated."""
    engine = Engine(tmp_path)
    doctor(home, engine, "update-guard", "--", *UPDATE)
    [file] = UpdateRecords(Home(home)).folder.glob("*.json")
    document = json.loads(file.read_text())
    document["before"] |= forged
    file.write_text(json.dumps(document))

    done = doctor(home, engine, "rollback", "--yes")

    assert done.code == 2
    assert "was not written by hermes-doctor" in done.err
    assert not [value for value in forged.values() if value in done.err]


@pytest.mark.sampled
@pytest.mark.parametrize("count", [0, 2])
def test_no_container_or_several(home: Path, tmp_path: Path, count: int) -> None:
    """Which one it is, nobody guesses."""
    engine = Engine(tmp_path, count)
    said = doctor(home, engine, "update-guard", "--", *UPDATE).err

    assert "A rollback could restore only the data" in said
    assert last(home).before is None
    done = doctor(home, engine, "rollback", "--yes")
    assert done.code == 2
    assert ("2 containers have" if count else "no container has") in done.err


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("source", "place", "more", "found"),
    [
        ("home", "/opt/data", {}, True),
        ("link", "/opt/data", {}, True),
        ("home", "/root/.hermes", {}, True),
        ("home", "/srv", {}, False),
        ("", "/opt", {}, False),
        ("", "/opt/data", {"HERMES_HOME": "/opt/data/home"}, True),
        ("", "/srv", {"HERMES_HOME": "/srv/home/"}, True),
        ("", "/rootfs", {"HERMES_HOME": "/srv/home"}, False),
        ("other", "HOME", {"HERMES_HOME": "HOME"}, False),
        ("home", "/data", {"HERMES_HOME": "/data"}, True),
        ("home", "/second", {"HERMES_HOME": "/data"}, False),
        ("home", "/data", {"HERMES_HOME": "/data/profiles/one"}, False),
        ("home/sessions", "/opt/data", {}, False),
    ],
)
def test_whose_volume_it_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    place: str,
    more: dict[str, str],
    found: bool,
) -> None:
    """The folder itself counts, wherever it is in a container, and not a path that looks alike."""
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "link").symlink_to(home)
    mount: dict[str, object] = {
        "Source": str(tmp_path / source),
        "Destination": place.replace("HOME", str(home)),
    }
    engine = Engine(tmp_path, mounts=[mount])
    held = engine.held
    variables = [f"{name}={value.replace('HOME', str(home))}" for name, value in more.items()]
    held["containers"][0]["Config"]["Env"] = variables
    engine.file.write_text(json.dumps(held))
    monkeypatch.setenv("PATH", f"{engine.bin}:{os.environ['PATH']}")

    assert bool(docker.all_of_home("docker", Home(home), limit=60)) == found

    held["containers"][0]["Mounts"][0]["RW"] = False
    engine.file.write_text(json.dumps(held))
    assert docker.all_of_home("docker", Home(home), limit=60) == []


def test_the_image_cannot_be_marked(home: Path, tmp_path: Path) -> None:
    """Said before the update; afterwards the data is all that is sure."""
    engine = Engine(tmp_path)
    program = engine.bin / "docker"
    program.write_text(program.read_text().replace('words[0] == "tag"', "False"))

    done = doctor(home, engine, "update-guard", "--", *UPDATE)

    assert done.code == 0
    assert "A rollback could restore only the data: `docker tag" in done.err
    assert "its previous image was removed" in doctor(home, engine, "rollback", "--yes").err


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        (UPDATE, True),
        (("/usr/bin/docker", "pull", "hermes"), True),
        (("sudo", "podman", "pull", "hermes"), True),
        (("docker-compose", "pull"), True),
        (("sudo", "-u", "chat", "docker", "pull", "x"), True),
        (("env", "X=1", "/usr/bin/docker", "compose", "up"), True),
        (("bash", "-c", "cd /srv/chat&&docker compose pull; docker compose up -d"), True),
        (("hermes", "update"), False),
        (("pip", "install", "docker"), False),
        (("sudo",), False),
        ((), False),
    ],
)
def test_is_meant(command: tuple[str, ...], meant: bool) -> None:
    """Which commands are about containers."""
    assert images.is_container_command(command) == meant


def test_no_engine(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is made up where nobody can be asked."""
    monkeypatch.setattr("hermes_doctor.hermes.supervisors.docker.engine", lambda: None)
    assert images.of_home(Home(home), required=False) is None
    with pytest.raises(CouldNotLook, match="no container engine was found"):
        images.of_home(Home(home))


def test_an_image_that_has_no_name_but_its_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some engines give every name a digest, too: it does not say that anybody else has it."""
    asked = tmp_path / "asked"
    digest = f"docker.io/{images.mark('a').partition(':')[0]}@sha256:{'a' * 64}"
    said = json.dumps([{"RepoTags": [images.mark("a")], "RepoDigests": [digest]}])
    program = f"#!/bin/sh\necho \"$1\" >>{asked}\necho '{said}'\n"
    support.put(tmp_path / "bin" / "docker", program, 0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")

    images.tag_previous_image(
        InstallationDetails("0.19.0", "container x", "image", revision="b" * 64), "c", ["a", "b"]
    )

    assert asked.read_text().split() == ["tag", "image"]
