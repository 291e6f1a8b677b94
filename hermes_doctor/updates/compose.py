"""A container that Docker Compose made, made anew from the image of before.

Whoever may talk to the engine may do everything on its machine, so nothing is run here because a
record in a home says it: how the container was made, the engine tells; the image of before bears
a mark that only somebody who talks to the engine can put there. And Compose must be about to make
the very container that is there now, but for the image: it says so itself, by the sum that it
keeps of a container's configuration.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.supervisors.docker import PATIENCE
from hermes_doctor.system import commands
from hermes_doctor.system.trust import distrust

_LABEL = "com.docker.compose."
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class Made(NamedTuple):
    """A container, and how Compose made it."""

    image: str
    """What its image is called there, such as `hermes:latest`."""
    project: str
    folder: str
    files: tuple[str, ...]
    variables: tuple[str, ...]
    """Files of variables, where it was given some."""
    service: str
    configuration: str
    """The sum of what its service was configured with."""
    mounts: Mapping[str, str]
    """What is mounted in it, by the place: the name of a volume, or a path."""
    networks: frozenset[str]

    def command(self, engine: str, *words: str) -> tuple[str, ...]:
        """Compose, for the same project."""
        options = [word for file in self.files for word in ("--file", file)]
        options += [word for file in self.variables for word in ("--env-file", file)]
        where = ("--project-name", self.project, "--project-directory", self.folder)
        # Whichever profiles were asked for then, the service itself is the same.
        return (engine, "compose", *where, *options, "--profile", "*", *words)

    def environment(self) -> dict[str, str]:
        """The variables of this shell, as if it stood in the folder of the project."""
        return {**os.environ, "PWD": self.folder}


def inspected(engine: str, *words: str) -> dict[str, Any]:
    """What the engine says of a thing; CannotFix where there is none."""
    import json

    try:
        answer = commands.ask(engine, *words, env=os.environ, limit=PATIENCE)
        found = json.loads(answer.out)[0] if not answer.code else None
        if isinstance(found, dict):
            return found
    except CouldNotLook as why:
        raise CannotFix(str(why)) from None
    except (ValueError, LookupError, RecursionError):
        pass
    raise CannotFix(f"{engine} knows no {words[-1]}")


def made(engine: str, container: str, home: Home) -> Made:
    """How a container was made; CannotFix where Compose could not make the same again."""
    one = inspected(engine, "inspect", "--type", "container", container)
    try:
        config = one["Config"]
        told = {str(name): str(value) for name, value in (config["Labels"] or {}).items()}
        volumes = [str(mount.get("Source") or "") for mount in one["Mounts"]]
        mounts = {str(m["Destination"]): str(m.get("Name") or m["Source"]) for m in one["Mounts"]}
        networks = frozenset(map(str, one["NetworkSettings"]["Networks"]))
        image = str(config["Image"])
    except (KeyError, TypeError, AttributeError):
        raise CannotFix(f"{engine} answers in unknown words") from None
    found = Made(
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
    words = (found.project, found.service, found.configuration)
    if not (all(map(_WORD.fullmatch, words)) and found.files):
        raise CannotFix("it was not made by Docker Compose")
    if told.get(f"{_LABEL}oneoff", "False") != "False":
        raise CannotFix("it was made by `docker compose run`, once")
    if not any(_is_below(str(home.path), source) for source in volumes):
        raise CannotFix("the home is no volume of it")
    for place in (found.folder, *found.files, *found.variables):
        _refuse_place(place, volumes)
    return found


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _refuse_place(place: str, volumes: Sequence[str]) -> None:
    """Only where nobody else could have written, least of all what runs in the container."""
    if not os.path.isabs(place):
        raise CannotFix("the files that Compose made it from are not there any more")
    if any(_is_below(place, source) for source in volumes):
        raise CannotFix(f"what runs in it can write to {place}")
    if why := distrust(Path(place), firm=True, also=_caller()):
        raise CannotFix(f"{place}: {why}")


def _is_below(place: str, folder: str) -> bool:
    """Whether a place is a folder, or in it."""
    if not folder:
        return False
    there, above = os.path.realpath(place), os.path.realpath(folder)
    return os.path.commonpath((there, above)) == above


def _caller() -> tuple[int, ...]:
    """Who called sudo: that one may do as root what they want, also by Compose."""
    number = os.environ.get("SUDO_UID", "")
    return (int(number),) if number.isdecimal() and os.geteuid() == 0 else ()


def refuse_other(engine: str, one: Made) -> None:
    """CannotFix where Compose would make another container now than the one that is there.

    Its sum is of a service with the files of variables read in, which `config` does and `config
    --hash` does not; and it is not of what the project calls its volumes, secrets and networks.
    """
    import json

    text = _told(engine, one, "config", "--format", "json")
    try:
        project = json.loads(text)
        same = _is_sum(engine, one, project)
        if not same:  # `up --no-deps` makes it as if it depended on nothing
            project["services"][one.service].pop("depends_on", None)
            same = _is_sum(engine, one, project)
        other = list(_others(one, project))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise CannotFix(f"`{engine} compose` answers in unknown words") from None
    if not same:
        raise CannotFix(
            f"from {one.files[0]} Compose would make a container that differs from the one that "
            f"is there, in more than the image: the file was changed, or variables that it had "
            f"are not set in this shell, or it shares the network of another container"
        )
    if other:
        raise CannotFix(f"Compose would make it with {other[0]}, unlike what it has now")


def _is_sum(engine: str, one: Made, project: object) -> bool:
    """Whether its sum is that of a project that Compose has read."""
    import json

    whole = one._replace(files=("-",), variables=())
    given = json.dumps(project).encode()
    answer = _told(engine, whole, "config", "--hash", one.service, given=given)
    return answer.split() == [one.service, one.configuration]


def _told(engine: str, one: Made, *words: str, given: bytes | None = None) -> str:
    command = one.command(engine, *words)
    try:
        answer = commands.ask(*command, env=one.environment(), limit=PATIENCE, given=given)
    except CouldNotLook as why:
        raise CannotFix(str(why)) from None
    if answer.code:
        where = "what it wrote itself" if given is not None else one.files[0]
        raise CannotFix(f"`{engine} compose` cannot read {where}")
    return answer.out


def _others(one: Made, project: dict[str, Any]) -> Iterator[str]:
    """What the service would get by a name that means something else by now."""
    service = project["services"][one.service]
    for volume in service.get("volumes") or ():
        if volume["type"] == "volume" and volume.get("source"):
            name = project["volumes"][volume["source"]]["name"]
            if one.mounts.get(volume["target"]) != name:
                yield f"volume {name}"
    for kind, folder in (("secrets", "/run/secrets"), ("configs", "")):
        for used in service.get(kind) or ():
            meant = project[kind][used["source"]]
            place = os.path.join(folder or "/", used.get("target") or used["source"])
            if "file" not in meant or one.mounts.get(place) != meant["file"]:
                yield f"{kind} from another file, or from none"
    wanted = service.get("networks") or {}
    names = {project["networks"][name]["name"] for name in wanted}
    if wanted and names != one.networks:
        yield f"network {min(names - one.networks or names)}"


def anew(engine: str, one: Made, image: str) -> list[tuple[str, ...]]:
    """The commands: the name of its image means that image again, and so does the container."""
    create = ("up", "--no-start", "--no-deps", "--no-build", "--pull", "never")
    up = one.command(engine, *create, "--force-recreate", one.service)
    return [(engine, "tag", image, one.image), up]
