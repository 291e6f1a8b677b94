"""Hermes in the image of a container, seen from its host: which image, and the way back to it.

A name of an image, such as `latest`, is another image after a pull. So the image is written down
by what never changes, and the way back gives that one its name again. Compose can then make the
container anew; one that was made by hand, only whoever knows with which options it was made.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.home import CONTAINER_HOME, Home
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.probes import Probes
from hermes_doctor.probes.supervisors import asking, docker
from hermes_doctor.probes.supervisors.unit import DOCKER, Unit
from hermes_doctor.updating.hermes import IMAGE, Installed

_ENGINES = ("docker", "docker-compose", "podman", "podman-compose")
_PLACE = "container "


def is_meant(command: Sequence[str]) -> bool:
    """Whether a command is one for containers: then it is their Hermes that becomes another."""
    words = [os.path.basename(word) for word in command[:2]]
    return any(word in _ENGINES for word in (words[1:] if words[:1] == ["sudo"] else words[:1]))


def of_home(home: Home) -> Installed | None:
    """The image of the container that a home is a volume of; None where no engine tells of one."""
    if docker.inside() and home.path == CONTAINER_HOME:  # every Hermes in a container has that one
        return None
    try:
        owner = Probes(home).supervision().owner
        running = owner if owner is not None and owner.kind == DOCKER else None
        unit = running or docker.of_home(home)
    except CouldNotLook:
        return None
    return _seen(unit) if unit else None


def is_one(one: Installed) -> bool:
    """Whether it is a container's, and we are not in that."""
    return one.kind == IMAGE and one.where.startswith(_PLACE)


def there(then: Installed) -> Installed | None:
    """What the container of that name is made from now."""
    engine = docker.engine()
    if engine is None:
        return None
    try:
        unit = docker.inspect(engine, then.where.removeprefix(_PLACE), Path("/"))
    except CouldNotLook:
        return None
    return _seen(unit) if unit else None


def _seen(unit: Unit) -> Installed | None:
    told = unit.settings
    image = told.get("Image", "").removeprefix("sha256:")
    if not image:
        return None
    return Installed(
        version=told.get("Version") or f"image {image[:12]}",
        where=f"{_PLACE}{unit.name}",
        kind=IMAGE,
        revision=image,
        source=told.get("ImageName", ""),
        compose={
            name: told[name]
            for name in ("Project", "Service", "ProjectFolder", "ProjectFiles")
            if told.get(name)
        },
    )


def way_back(before: Installed, after: Installed | None) -> list[tuple[str, ...]]:
    """The commands, none where all is as it was; CannotFix where it takes a person."""
    name, image = before.source, before.revision or ""
    engine = docker.engine()
    if engine is None:
        raise CannotFix("no container engine can be asked from here")
    if not _id(engine, image):
        raise CannotFix(
            f"the image {image[:12]} is not there any more: get {name} of then from where it came, "
            f"and make the container from it"
        )
    if after is not None and after.source != name:
        raise CannotFix(
            f"the container is made from {after.source} by now, and was from {name}: put that back "
            f"where it is set, and make the container anew"
        )
    renamed: list[tuple[str, ...]] = []
    if _id(engine, name) != image:
        renamed = [(engine, "tag", image, name)]
    if after is not None and after.revision == image:
        return renamed
    if not before.compose.get("Service") or asking.ask(engine, "compose", "version").code:
        raise CannotFix(
            f"its container was made by hand, or {engine} has no Compose here: make it anew, with "
            f"the options that it had, from image {image[:12]}"
        )
    return [*renamed, (*_compose(engine, before), before.compose["Service"])]


def _id(engine: str, image: str) -> str:
    """What an image is by its hash; empty where there is none of that name."""
    answer = asking.ask(engine, "image", "inspect", "--format", "{{.Id}}", image)
    return answer.out.strip().removeprefix("sha256:") if not answer.code else ""


def _compose(engine: str, before: Installed) -> tuple[str, ...]:
    """Make it anew, and do not start it: its data comes back first."""
    told = before.compose
    words = [engine, "compose", "--project-name", told.get("Project", "")]
    if folder := told.get("ProjectFolder"):
        words += ["--project-directory", folder]
    for file in filter(None, told.get("ProjectFiles", "").split(",")):
        words += ["--file", file]
    return (*words, "up", "--no-start", "--no-deps", "--no-build", "--pull", "never")
