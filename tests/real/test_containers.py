"""Hermes in a real container: its image is exchanged with its data, or nothing is touched."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from hermes_doctor.backup.records.updates import Update, UpdateRecords
from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.installation.details import InstallationDetails
from hermes_doctor.hermes.processes import gateway_processes
from hermes_doctor.operations.updates import images
from tests.cli.test_separate_look import TRACED, sorted_by_user
from tests.conftest import need_release
from tests.helpers import crash_server, support
from tests.helpers.crash_server import STRANGER
from tests.helpers.real import gateways
from tests.helpers.real.containers import IMAGE, OUTSIDE, Engine, Project, engine, project_of
from tests.helpers.real.release_homes import ROWS
from tools import real_home, releases

pytestmark = [pytest.mark.real, pytest.mark.wide]
OLD, NEW = "0.18.2", "0.19.0"
UPDATE = ("docker", "compose", "up", "-d")
ALONE = (*UPDATE, "--no-deps", "gateway")
SPEAK = """
import os
from pathlib import Path
from hermes_state import SessionDB
history = SessionDB(Path(os.environ["HERMES_HOME"]) / "state.db")
history.append_message("one", "user", "said afterwards")
history.close()
"""


@pytest.fixture(scope="module")
def docker() -> Iterator[Engine]:
    """One engine for all of them."""
    need_release(OLD)
    need_release(NEW)
    with engine() as made:
        yield made


@pytest.fixture
def project(docker: Engine, tmp_path: Path) -> Iterator[Project]:
    """A gateway of the old release in a container, on a home of its own."""
    made = project_of(docker, tmp_path, OLD)
    support.put(made.home / ".env", "SOME_API_KEY=sk-must-stay\n")
    made.up()
    yield made
    docker.docker("rm", "--force", made.container)


def updated(project: Project, start: str | None = None, command: Sequence[str] = UPDATE) -> Update:
    """After an update under the guard."""
    project.engine.image(NEW, start)
    done = project.doctor("update-guard", "--", *command)
    assert start or done.code == 0, done.err
    found = UpdateRecords(Home(project.home)).last()
    assert found is not None
    return found


def state(project: Project) -> tuple[str, ...]:
    """What must be the same where nothing is touched."""
    running = project.engine.inspect(project.container, "{{.Id}} {{.State.StartedAt}}")
    return running, project.image, project.engine.named(IMAGE)


def test_there_and_back(project: Project) -> None:
    """The exact image of before with the data of before, and its gateway works on them."""
    old = project.image
    said = real_home.run(OLD, project.home, ROWS)
    update = updated(project)
    assert update.before is not None and update.after is not None
    assert (update.before.version, update.after.version) == (OLD, NEW)
    assert project.image != old
    real_home.run(NEW, project.home, SPEAK)

    done = project.doctor("rollback", "--yes")

    assert done.code == 0, done.err
    assert project.image == project.engine.named(IMAGE) == old
    assert project.holds_gateway
    assert real_home.run(OLD, project.home, ROWS) == said
    assert (project.home / ".env").read_text() == "SOME_API_KEY=sk-must-stay\n"
    again = project.doctor("rollback", update.id, "--yes", "--keep-data")
    assert again.code == 0, again.err
    assert project.image == old


@pytest.fixture
def project_of_another_user(project: Project) -> Project:
    """The same as a stranger's: the home belongs to him, and the gateway runs as him."""
    project.engine.docker("rm", "--force", project.container)
    file = project.folder / "compose.yaml"
    file.write_text(
        file.read_text().replace("image:", f"user: '{STRANGER}:{STRANGER}'\n    image:")
    )
    crash_server.chown(project.home)
    project.up()
    return project


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
@pytest.mark.needs("strace")
def test_there_and_back_for_another_user(project_of_another_user: Project, tmp_path: Path) -> None:
    """Root exchanges the image, and opens nothing in the home meanwhile."""
    project, log = project_of_another_user, tmp_path / "log"
    old = project.image
    text = (project.home / "config.yaml").read_text()
    update = updated(project)
    assert update.before is not None and update.before.revision == old
    assert project.image != old
    (project.home / "config.yaml").write_text(text + "# later\n")

    strace = ("strace", "-f", "-y", "-qq", "-o", str(log), "-e", f"trace={TRACED}")
    done = project.doctor("rollback", "--yes", traced_by=strace)

    assert done.code == 0, done.err
    assert project.image == project.engine.named(IMAGE) == old
    assert project.holds_gateway
    assert (project.home / "config.yaml").read_text() == text
    by_root, by_others = sorted_by_user(log.read_text(errors="replace"))
    assert [path for path in by_root if path.startswith(str(project.home))] == []
    assert str(project.home / "config.yaml") in by_others
    assert crash_server.strangers(project.home) == []


@pytest.mark.parametrize("policy", ["unless-stopped", "on-failure:1"])
def test_an_image_whose_gateway_never_comes_up(project: Project, policy: str) -> None:
    """The container starts again and again, or has given up; it goes back, and runs."""
    file = project.folder / "compose.yaml"
    file.write_text(file.read_text().replace("unless-stopped", policy))
    project.up()
    gateways.until(lambda: project.holds_gateway, "the gateway in the container")
    old = project.image
    said = real_home.run(OLD, project.home, ROWS)
    update = updated(project, "exit 3")
    assert update.stage == "checked"
    assert not Probes(Home(project.home)).gateway.running()  # also none of the host's own Hermes

    done = project.doctor("rollback", "--yes")

    assert done.code == 0, done.err
    assert project.image == old
    assert project.holds_gateway
    assert real_home.run(OLD, project.home, ROWS) == said


@pytest.mark.parametrize(
    "how", ["file", "variable", "name", "volume", "stranger", "mark", "meaning"]
)
def test_nothing_is_touched(project: Project, how: str) -> None:
    """Where Compose would make something else, or others decide what it makes."""
    env = {}
    if how == "variable":
        project.write(MODE="${MODE:-none}")
        project.up()
        env = {"MODE": "other"}
    if how == "meaning":
        _with_more(project)
        env = {"WHICH": "another"}
    update = updated(project, command=ALONE if how == "meaning" else UPDATE)
    if how == "file":
        project.write(MORE="variables")
    if how == "name":
        project.engine.docker("tag", IMAGE, "hermes:0.19.0")
        project.write("hermes:0.19.0")
        project.up()
    if how == "volume":
        _made_from_the_home(project)
    if how == "stranger":
        os.chown(project.folder / "compose.yaml", 12345, 12345)
    if how == "mark":
        project.engine.docker("rmi", f"hermes-doctor/before:{update.id}")
    project.wait()
    before = state(project)

    done = project.doctor("rollback", "--yes", **env)

    assert done.code == 2
    assert "cannot be recreated automatically:" in done.err
    assert ("a different volume another" in done.err) == (how == "meaning")
    assert f"hermes-doctor backup restore {update.backup} --home {project.home}" in done.err
    assert state(project) == before


def _with_more(project: Project) -> None:
    """A file for Compose with what people have in theirs."""
    text = (project.folder / "compose.yaml").read_text()
    text = text.replace("['", "['/anonymous', 'kept:/kept', '")
    text += """
    env_file: [tokens]
    secrets: [word]
    profiles: [chat]
    depends_on: [database]
  database:
    image: hermes:latest
    profiles: [chat]
secrets:
  word:
    file: ./word
volumes:
  kept:
    name: ${WHICH:-kept}
"""
    support.put(project.folder / "compose.yaml", text)
    support.put(project.folder / "tokens", "TOKEN=sk-in-a-file\n")
    support.put(project.folder / "word", "secret")
    project.engine.docker(*ALONE[1:], cwd=project.folder)
    project.wait()


def test_it_keeps_all_that_it_had(project: Project) -> None:
    """Volumes without a name, variables out of files, secrets, and the profile of its service."""
    _with_more(project)
    update = updated(project, command=ALONE)
    had = settings(project)
    assert "TOKEN=sk-in-a-file" in had

    done = project.doctor("rollback", "--yes")

    assert done.code == 0, done.err
    assert update.before is not None and project.image == update.before.revision
    assert settings(project) == had
    assert project.holds_gateway
    for file in (project.home / "backups").rglob("*.json"):
        assert "sk-in-a-file" not in file.read_text()


def settings(project: Project) -> list[str]:
    """What a container is made with, but for its image."""
    known = json.loads(project.engine.docker("inspect", project.container))[0]
    mounts = [
        f"{one['Destination']}: {one.get('Name') or one['Source']}" for one in known["Mounts"]
    ]
    host = known["HostConfig"]
    return sorted([*known["Config"]["Env"], *mounts, str(host["RestartPolicy"])])


@pytest.mark.parametrize("is_there", [False, True])
def test_compose_is_cut_off(project: Project, is_there: bool) -> None:
    """In the middle of an exchange: the new one has no name yet, and the old one is still there."""
    docker, name = project.engine, project.container
    update = updated(project)
    old = docker.inspect(name, "{{.Id}}")
    halfway = f"0123456789ab_{name}"
    docker.docker("stop", name)
    if is_there:
        label, volume = f"com.docker.compose.replace={old}", f"{project.home}:/opt/data"
        docker.docker("create", "--name", halfway, "--label", label, "-v", volume, IMAGE)
    else:
        docker.docker("rename", name, halfway)
    update.down, update.stage = [str(project.home)], "going-back"
    UpdateRecords(Home(project.home)).save(update)

    done = project.doctor("rollback", update.id, "--yes")

    assert done.code == 0, done.err
    assert project.holds_gateway
    assert halfway not in docker.docker("ps", "--all", "--format", "{{.Names}}").split()
    assert update.before is not None and project.image == update.before.revision


def test_a_path_that_looks_alike(project: Project, tmp_path: Path) -> None:
    """A container that has something else at that path is nobody of ours."""
    docker = project.engine
    docker.docker("rm", "--force", project.container)
    volumes = ("-v", f"{tmp_path}/other:{project.home}", "-v", "/usr:/usr:ro")
    made = docker.docker("run", "-d", "--network", "host", *volumes, IMAGE, "sleep", "1000")

    done = project.doctor("update-guard", "--", "docker", "images", "--quiet")

    assert "no container has this home as a volume" in done.err
    assert docker.inspect(made, "{{.State.Status}}") == "running"
    docker.docker("rm", "--force", made)


def _made_from_the_home(project: Project) -> None:
    """By a file that whatever runs in the container can write to."""
    support.put(project.home / "compose.yaml", (project.folder / "compose.yaml").read_text())
    words = ("compose", "--project-name", project.folder.name, "--project-directory")
    file = project.home / "compose.yaml"
    project.engine.docker(*words, project.folder, "--file", file, "up", "-d", "--force-recreate")


def test_made_by_hand(project: Project) -> None:
    """How it was made, only its owner knows; the image of before is kept for that."""
    docker, name = project.engine, project.container
    volumes = f"-v {project.home}:/opt/data -v /usr:/usr:ro --network host"
    anew = f"docker rm -f {name} && docker run -d --name {name} {volumes} {IMAGE} sleep 1000"
    docker.docker("rm", "--force", name)
    docker.docker(*shlex.split(anew)[6:])
    update = updated(project, command=("sh", "-c", anew))
    assert update.before is not None and update.after is not None
    assert (update.before.version, update.after.version) == (OLD, NEW)

    done = project.doctor("rollback", "--yes")

    assert done.code == 2
    assert "it was not created by Docker Compose" in done.err
    assert docker.named(f"hermes-doctor/before:{update.id}") == update.before.revision


def test_a_record_that_names_another_image(project: Project) -> None:
    """It lies in the home; what bears no mark is not run."""
    update = updated(project)
    other = project.engine.image(NEW, "sleep 1000", "other:latest")
    file = UpdateRecords(Home(project.home)).folder / f"{update.id}.json"
    document = json.loads(file.read_text())
    document["before"]["revision"] = other
    file.write_text(json.dumps(document))
    before = state(project)

    done = project.doctor("rollback", "--yes")

    assert done.code == 2
    assert "not the one in the record of the update" in done.err
    assert state(project) == before


def test_killed_in_the_middle(project: Project) -> None:
    """Whenever it is killed, it goes on from there."""
    old = project.image
    update = updated(project)
    words = [sys.executable, "-c", OUTSIDE, "rollback", "--yes", "--home", str(project.home)]
    for moment in ("docker tag", "compose --project-name"):
        process = subprocess.Popen(
            words,
            env=support.environ(project.engine.env),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        gateways.until(partial(_is_at, process, moment), moment)
        process.kill()
        process.wait()

    done = project.doctor("rollback", update.id, "--yes")

    assert done.code == 0, done.err
    assert project.image == old
    assert project.holds_gateway


def _is_at(process: subprocess.Popen[bytes], moment: str) -> bool:
    """Whether it runs that command now, or has ended."""
    if process.poll() is not None:
        return True
    try:
        below = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in below]
    except OSError:
        return False
    return any(moment in line.replace(b"\0", b" ").decode() for line in lines)


def test_old_marks_go(docker: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The images of two updates are kept, and older ones that nobody could fetch again."""
    for name, value in docker.env.items():
        monkeypatch.setenv(name, value)
    image = docker.image(OLD, "exit 0", "mine:1")
    docker.image(OLD, "exit 1", images.mark("a"))
    for name in ("b", "c", "d"):
        docker.docker("tag", image, images.mark(name))

    images.tag_previous_image(
        InstallationDetails(OLD, "container x", "image", revision=image), "e", ["a", "b", "c", "d"]
    )

    kept = docker.docker("images", "hermes-doctor/before", "--format", "{{.Tag}}").split()
    assert [one for one in sorted(kept) if len(one) == 1] == ["a", "d", "e"]


def test_what_else_runs_in_the_container(project: Project) -> None:
    """It ends with the container, so it may have the databases open."""
    old = project.image
    update = updated(project)
    script = "import sqlite3, time; d = sqlite3.connect('/opt/data/state.db')"
    script += "; d.execute('select count(*) from sessions'); print('open'); time.sleep(1000)"
    python = releases.python_of(NEW)
    project.engine.docker("exec", "--detach", project.container, python, "-c", script)
    gateways.until(lambda: len(holders(project)) > 1, "a second holder")

    done = project.doctor("rollback", update.id, "--yes")

    assert done.code == 0, done.err
    assert project.image == old


def holders(project: Project) -> list[int]:
    """Who has the database open."""
    path = project.home / "state.db"
    return sorted(gateway_processes.processes_using([path])[path])
