"""Recreates a container that Docker Compose made, from the image it had before an update.

Access to the container engine means full control of its machine, so nothing is run here on the word
of a record in a home. The engine says how the container was made, and the old image bears a mark
that only a user of the engine can set. Also, apart from the image, Compose must be about to create
the same container that exists now; the digest of its configuration proves that.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system import commands
from hermes_doctor.core.system.accounts import why_untrusted
from hermes_doctor.hermes.supervisors.docker import PATIENCE

_LABEL = "com.docker.compose."
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class ComposeContainer(NamedTuple):
    """A container, and how Compose made it."""

    image: str
    """The name of its image, such as `hermes:latest`."""
    project: str
    folder: str
    files: tuple[str, ...]
    variables: tuple[str, ...]
    """Files of environment variables, if it was given some."""
    service: str
    configuration: str
    """Compose's digest of the service's configuration."""
    mounts: Mapping[str, str]
    """By path in the container: the name of the volume or the path that is mounted there."""
    networks: frozenset[str]

    def command(self, engine: str, *words: str) -> tuple[str, ...]:
        """A Compose command line for the same project."""
        options = [word for file in self.files for word in ("--file", file)]
        options += [word for file in self.variables for word in ("--env-file", file)]
        where = ("--project-name", self.project, "--project-directory", self.folder)
        # All profiles are enabled, since the original choice is unknown; the service is the same.
        return (engine, "compose", *where, *options, "--profile", "*", *words)

    def environment(self) -> dict[str, str]:
        """The variables of this shell, with the project's folder as the working directory."""
        return {**os.environ, "PWD": self.folder}


def inspect_object(engine: str, *words: str) -> dict[str, Any]:
    """Inspect an object of the engine; raise CannotFix if there is none."""
    try:
        answer = commands.ask(engine, *words, env=os.environ, limit=PATIENCE)
        first = json.loads(answer.out)[0] if not answer.code else None
        if isinstance(first, dict):
            return first
    except CouldNotLook as why:
        raise CannotFix(str(why)) from None
    except (ValueError, LookupError, RecursionError):
        pass
    raise CannotFix("{engine} does not know {command}", engine=engine, command=words[-1])


def inspect_container(
    engine: str, container: str, home: Home, ids: Sequence[str]
) -> ComposeContainer:
    """Find out how a container was made; raise CannotFix if Compose could not make it again.

    It is one of the containers with these `ids`, which have the home as a volume.
    """
    inspected = inspect_object(engine, "inspect", "--type", "container", container)
    if inspected.get("Id") not in ids:
        raise CannotFix("the home is not one of its volumes")
    try:
        config = inspected["Config"]
        told = {str(name): str(value) for name, value in (config["Labels"] or {}).items()}
        volumes = [str(mount.get("Source") or "") for mount in inspected["Mounts"]]
        mounts = {
            str(m["Destination"]): str(m.get("Name") or m["Source"]) for m in inspected["Mounts"]
        }
        networks = frozenset(map(str, inspected["NetworkSettings"]["Networks"]))
        image = str(config["Image"])
    except (KeyError, TypeError, AttributeError):
        raise CannotFix("could not understand the answer of {engine}", engine=engine) from None
    composed = ComposeContainer(
        image,
        told.get(f"{_LABEL}project", ""),
        told.get(f"{_LABEL}project.working_dir", ""),
        _listed(told.get(f"{_LABEL}project.config_files", "")),
        _listed(told.get(f"{_LABEL}project.environment_file", "")),
        told.get(f"{_LABEL}service", ""),
        told.get(f"{_LABEL}config-hash", ""),
        mounts,
        networks,
    )
    words = (composed.project, composed.service, composed.configuration)
    if not (all(map(_WORD.fullmatch, words)) and composed.files):
        raise CannotFix("it was not created by Docker Compose")
    if told.get(f"{_LABEL}oneoff", "False") != "False":
        raise CannotFix("it was created by `docker compose run`")
    if not any(_is_below(str(home.path), source) for source in volumes):
        raise CannotFix("the home is not one of its volumes")
    for place in (composed.folder, *composed.files, *composed.variables):
        # Raise if other users, or the container itself, could have written there.
        if not os.path.isabs(place):
            raise CannotFix("the Compose files that created it are missing")
        if any(_is_below(place, source) for source in volumes):
            raise CannotFix("processes in the container can write to {folder}", folder=place)
        number = os.environ.get("SUDO_UID", "")
        if why := why_untrusted(
            Path(place),
            strict=True,
            trusted_uids=(int(number),) if number.isdecimal() and os.geteuid() == 0 else (),
        ):
            raise CannotFix("{folder}: {reason}", folder=place, reason=why)
    return composed


def _listed(content: str) -> tuple[str, ...]:
    return tuple(content.split(",")) if content else ()


def _is_below(place: str, folder: str) -> bool:
    """Whether a path is the folder or inside it."""
    if not folder:
        return False
    there, above = os.path.realpath(place), os.path.realpath(folder)
    return os.path.commonpath((there, above)) == above


def refuse_different(engine: str, container: ComposeContainer) -> None:
    """Raise CannotFix if Compose would now create a different container from the existing one.

    The digest covers the service with its env files read in, which `config` does and `config
    --hash` does not. It does not cover the names that the project gives its volumes, secrets and
    networks.
    """
    content = _told(engine, container, "config", "--format", "json")
    try:
        project = json.loads(content)
        same = _is_sum(engine, container, project)
        if not same:  # `up --no-deps` creates it without its dependencies
            project["services"][container.service].pop("depends_on", None)
            same = _is_sum(engine, container, project)
        other = list(_others(container, project))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise CannotFix(
            "could not understand the answer of `{engine} compose`", engine=engine
        ) from None
    if not same:
        raise CannotFix(
            "{file} would now create a different container: the file was changed, "
            "variables are not set in this shell, or it shares the network of "
            "another container",
            file=container.files[0],
        )
    if other:
        raise CannotFix("Compose would now create it with a different {setting}", setting=other[0])


def _is_sum(engine: str, container: ComposeContainer, project: object) -> bool:
    """Whether Compose computes the same digest for the project that it has read."""
    whole = container._replace(files=("-",), variables=())
    given = json.dumps(project).encode()
    answer = _told(engine, whole, "config", "--hash", container.service, given=given)
    return answer.split() == [container.service, container.configuration]


def _told(engine: str, container: ComposeContainer, *words: str, given: bytes | None = None) -> str:
    command = container.command(engine, *words)
    try:
        answer = commands.ask(*command, env=container.environment(), limit=PATIENCE, stdin=given)
    except CouldNotLook as why:
        raise CannotFix(str(why)) from None
    if answer.code:
        where = "its own output" if given is not None else container.files[0]
        raise CannotFix("`{engine} compose` could not read {place}", engine=engine, place=where)
    return answer.out


def _others(container: ComposeContainer, project: dict[str, Any]) -> Iterator[str]:
    """Volumes, secrets, configs and networks whose names now mean something else."""
    service = project["services"][container.service]
    for volume in service.get("volumes") or ():
        if volume["type"] == "volume" and volume.get("source"):
            name = project["volumes"][volume["source"]]["name"]
            if container.mounts.get(volume["target"]) != name:
                yield f"volume {name}"
    for kind, folder in (("secrets", "/run/secrets"), ("configs", "")):
        for used in service.get(kind) or ():
            meant = project[kind][used["source"]]
            place = os.path.join(folder or "/", used.get("target") or used["source"])
            if "file" not in meant or container.mounts.get(place) != meant["file"]:
                yield f"file for {kind}"
    wanted = service.get("networks") or {}
    names = {project["networks"][name]["name"] for name in wanted}
    if wanted and names != container.networks:
        yield f"network {min(names - container.networks or names)}"


def recreate_commands(
    engine: str, container: ComposeContainer, image: str
) -> list[tuple[str, ...]]:
    """Commands that give the image's name back to the old image and recreate the container."""
    create = ("up", "--no-start", "--no-deps", "--no-build", "--pull", "never")
    up = container.command(engine, *create, "--force-recreate", container.service)
    return [(engine, "tag", image, container.image), up]
