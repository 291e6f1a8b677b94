"""Hermes in the image of a container, seen from its host: which one it is, and was.

A name of an image, such as `latest`, is another image after a pull. So the image is written down
by what never changes, its hash, for whoever has to go back to it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.home import CONTAINER_HOME, Home
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.probes import Probes
from hermes_doctor.probes.supervisors import docker
from hermes_doctor.probes.supervisors.unit import DOCKER, Unit
from hermes_doctor.services.docker import NAME
from hermes_doctor.updating.hermes import IMAGE, Installed

_ENGINES = ("docker", "docker-compose", "podman", "podman-compose")
_PLACE = "container "
_HASH = re.compile(r"[0-9a-f]{64}")
_REFERENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@-]*")


def is_meant(command: Sequence[str]) -> bool:
    """Whether a command is one for containers: then it is their Hermes that becomes another."""
    words = [os.path.basename(word) for word in command[:2]]
    return any(word in _ENGINES for word in (words[1:] if words[:1] == ["sudo"] else words[:1]))


def of_home(home: Home) -> Installed | None:
    """The image of the container that a home is a volume of; None where no engine tells of one,
    or of several: which of them the gateway is in cannot be told."""
    if docker.inside() and home.path == CONTAINER_HOME:  # every Hermes in a container has that one
        return None
    try:
        owner = Probes(home).supervision().owner
        running = owner if owner is not None and owner.kind == DOCKER else None
        unit = running or docker.only_of_home(home)
    except CouldNotLook:
        return None
    return _seen(unit) if unit else None


def is_one(one: Installed) -> bool:
    """Whether it is a container's, and we are not in that."""
    return one.kind == IMAGE and one.where.startswith(_PLACE)


def there(then: Installed) -> Installed | None:
    """What the container of that name is made from now."""
    engine, name = docker.engine(), then.where.removeprefix(_PLACE)
    if engine is None or not NAME.fullmatch(name):
        return None
    try:
        unit = docker.inspect(engine, name, Path("/"))
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
    )


def by_hand(before: Installed) -> str:
    """What to do for the image of before. How the container was made, only its owner knows; and a
    record lies in the home, where others can write: nothing of it is run."""
    engine, name = docker.engine() or "docker", before.where.removeprefix(_PLACE)
    image = _HASH.fullmatch(before.revision or "") and _REFERENCE.fullmatch(before.source)
    if not (image and NAME.fullmatch(name)):
        raise CannotFix("the record of that update is not one that this tool wrote")
    return (
        f"its Hermes lies in the image of container {name}, which you exchange by hand: stop the "
        f"container, {engine} tag {before.revision} {before.source}, make the container anew "
        f"without a pull"
    )
