"""A real Docker engine with a real Compose, and images whose gateway is a release of Hermes.

An image has no more than the command in it. What that needs, Python and the release, are volumes
of this machine's own folders, which nothing in the container can write to.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.processes.lineage import control_group_of
from tests.helpers import requirements, support
from tests.helpers.real import gateways
from tools import compose_plugin, real_home, releases

IMAGE = "hermes:latest"
OUTSIDE = """
import sys
from hermes_doctor.hermes.processes import lineage
from hermes_doctor.repair.gateway import startup_proof
lineage._MARKS = ()
startup_proof.SETTLE = 1.0
from hermes_doctor.__main__ import main
main()
"""
"""The command, where nothing says that this machine is itself a container, as those of CI are; and
a gateway need not stay up for so long."""
FILE = """
services:
  gateway:
    image: {image}
    command: {command}
    network_mode: host
    restart: unless-stopped
    volumes: {volumes}
    environment: {environment}
"""


@dataclass(frozen=True)
class Engine:
    """One that runs, with nothing in it but what a test makes."""

    place: Path

    @property
    def env(self) -> dict[str, str]:
        """What an operator's shell has, so that `docker` talks to this one."""
        return {
            "DOCKER_HOST": f"unix://{self.place}/docker.sock",
            "DOCKER_CONFIG": str(compose_plugin.folder()),
            "HERMES_DOCTOR_SETTLE": "0",
        }

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `docker`, which may fail."""
        env = {**os.environ, **self.env}
        return subprocess.run(["docker", *words], env=env, capture_output=True, text=True)

    def docker(self, *words: str | Path, data: bytes | None = None, cwd: Path | None = None) -> str:
        """What it prints; it must succeed."""
        env = {**os.environ, **self.env}
        done = subprocess.run(
            ["docker", *words], env=env, cwd=cwd, input=data, capture_output=True, timeout=120
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    def image(self, version: str, start: str | None = None, name: str | None = None) -> str:
        """An image whose command is the gateway of a release; its hash."""
        python = releases.python_of(version)
        script = start or f"exec {python.parent}/hermes gateway run"
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w") as tar:
            for link, target in (("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")):
                entry = tarfile.TarInfo(link)
                entry.type, entry.linkname = tarfile.SYMTYPE, target
                tar.addfile(entry)
            entry = tarfile.TarInfo("start")
            text = f"#!/bin/sh\n{script}\n".encode()
            entry.mode, entry.size = 0o755, len(text)
            tar.addfile(entry, io.BytesIO(text))
        changes = ("LABEL org.opencontainers.image.version=" + version, 'CMD ["/start"]')
        options = [word for change in changes for word in ("--change", change)]
        found = self.docker("import", *options, "-", name or IMAGE, data=made.getvalue())
        return found.removeprefix("sha256:")

    def inspect(self, container: str, what: str) -> str:
        """One thing that the engine says of a container."""
        return self.docker("inspect", "--format", what, container)

    def named(self, name: str) -> str:
        """The hash of the image that has a name."""
        return self.docker("image", "inspect", "--format", "{{.Id}}", name).removeprefix("sha256:")

    def doctor(
        self, *words: str, cwd: Path | None = None, traced_by: Sequence[str] = (), **env: str
    ) -> support.Done:
        """The command of an operator on the host, started by another program if one is given."""
        done = subprocess.run(
            [*traced_by, sys.executable, "-c", OUTSIDE, *words],
            env=support.environ(self.env | env),
            cwd=cwd or "/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return support.Done(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class Project:
    """A folder with a file for Compose, whose container has a home as its volume."""

    engine: Engine
    folder: Path
    home: Path

    @property
    def container(self) -> str:
        """Its name, as Compose makes it."""
        return f"{self.folder.name}-gateway-1"

    @property
    def image(self) -> str:
        """The hash of the image that it is made from."""
        return self.engine.inspect(self.container, "{{.Image}}").removeprefix("sha256:")

    @property
    def holds_gateway(self) -> bool:
        """Whether the one gateway of the home runs, and in the container."""
        places = [
            control_group_of(one.pid).container for one in Probes(Home(self.home)).gateway.running()
        ]
        return places == [self.engine.inspect(self.container, "{{.Id}}")]

    def write(self, image: str = IMAGE, command: str = "/start", **more: str) -> None:
        """The file."""
        text = FILE.format(
            image=image,
            command=command,
            volumes=[f"{self.home}:/opt/data", *(f"{one}:{one}:ro" for one in _shared())],
            environment=_environment() | more,
        )
        support.put(self.folder / "compose.yaml", text)

    def up(self) -> None:
        """`docker compose up -d`, and a gateway in it."""
        self.engine.docker("compose", "up", "-d", cwd=self.folder)
        self.wait()

    def wait(self) -> None:
        """Until its gateway is up."""

        def is_up() -> bool:
            try:
                state = json.loads((self.home / "gateway_state.json").read_bytes())
            except (OSError, ValueError):
                return False
            return bool(state["gateway_state"] == "running")

        gateways.until(is_up, "the gateway in the container")

    def doctor(self, *words: str, traced_by: Sequence[str] = (), **env: str) -> support.Done:
        """The command on the home, from the folder of the project."""
        words = (words[0], "--home", str(self.home), *words[1:])
        return self.engine.doctor(*words, cwd=self.folder, traced_by=traced_by, **env)


def project_of(engine: Engine, place: Path, version: str) -> Project:
    """Make a home of a release, an image with its gateway, and the file for Compose."""
    folder = place / f"p{abs(hash(place)) % 10**8}"  # Compose names containers by the folder
    made = Project(engine, folder, real_home.make(version, place / "home"))
    engine.image(version)
    made.write()
    return made


def _shared() -> list[str]:
    """What a gateway needs of this machine."""
    python = Path(os.path.realpath(sys.executable)).parent.parent
    usual = python.is_relative_to("/usr")
    return ["/usr", str(releases.cache()), *([] if usual else [str(python)])]


def _environment() -> dict[str, str]:
    own = {"HERMES_HOME": "/opt/data", "HOME": "/opt/data", "PATH": "/usr/bin:/bin"}
    return own | gateways.sealed(None)


@contextmanager
def engine() -> Iterator[Engine]:
    """A Docker of its own, which changes nothing of this machine's network."""
    _need()
    place = Path(tempfile.mkdtemp(prefix="hd-"))  # the path of a socket must be short
    made = Engine(place)
    still = ("--iptables=false", "--ip-masq=false", "--ip-forward=false", "--bridge=none")
    where = (
        "--data-root",
        place / "data",
        "--exec-root",
        place / "run",
        "--pidfile",
        place / "pid",
    )
    words = ("dockerd", *still, *where, "--storage-driver=vfs", "-H", made.env["DOCKER_HOST"])
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        gateways.until((place / "docker.sock").exists, "Docker")
        gateways.until(lambda: process.poll() is None and _answers(made), "Docker to answer")
        yield made
        for one in made.docker("ps", "--all", "--quiet").split():
            made.docker("rm", "--force", one)
        # Each Compose project makes a bridge, which stays on the machine and takes one of 31 ranges
        # of addresses.
        made.docker("network", "prune", "--force")
    finally:
        gateways.end(process)
        subprocess.run(["umount", place / "run/netns/default"], capture_output=True)
        shutil.rmtree(place, ignore_errors=True)


def _answers(one: Engine) -> bool:
    env = {**os.environ, **one.env}
    return not subprocess.run(["docker", "info"], env=env, capture_output=True).returncode


def _need() -> None:
    """What these tests need; where a machine cannot have it they are skipped, but not in CI."""
    missing = [name for name in ("dockerd", "docker", "runc") if shutil.which(name) is None]
    why = f"no {missing[0]} here" if missing else "" if os.geteuid() == 0 else "only root may"
    try:
        if not why:
            compose_plugin.folder()
    except (OSError, RuntimeError, KeyError, subprocess.CalledProcessError) as error:
        why = f"Docker Compose cannot be had: {error}"
    if why:
        requirements.missing(why)
