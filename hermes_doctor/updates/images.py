"""Hermes in the image of a container, seen from its host: which one it is, and was.

A name of an image, such as `latest`, is another image after a pull. So the image is written down
by what never changes, its hash, and gets a mark, a name of ours: no tidying up of images without
a name takes it, and a record, which lies in the home where others can write, cannot make up one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.gateway.docker import NAME
from hermes_doctor.gateway.manager_commands import insist
from hermes_doctor.home import CONTAINER_HOME, Home
from hermes_doctor.installation.details import IMAGE, Installed
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.probes.probes import Probes
from hermes_doctor.records.updates import Update
from hermes_doctor.supervisors import docker
from hermes_doctor.supervisors.unit import DOCKER, Unit
from hermes_doctor.updates import compose

_ENGINES = ("docker", "docker-compose", "podman", "podman-compose")
_AROUND = ("sudo", "doas", "env", "nice", "ionice", "timeout", "nohup", "time", "sh", "bash", "zsh")
"""Commands that run another one, which is somewhere in their words."""
_PLACE = "container "
_MARK = "hermes-doctor/before"
_MARKS = 2
"""How many images of before are kept of a home."""
_HASH = re.compile(r"[0-9a-f]{64}")
_REFERENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@-]*")


def is_meant(command: Sequence[str]) -> bool:
    """Whether a command is one for containers: then it is their Hermes that becomes another."""
    words = list(command[:1])
    if words and os.path.basename(words[0]) in _AROUND:
        words = [word for one in command for word in re.split(r"[\s;&|()]+", one)]
    return any(os.path.basename(word) in _ENGINES for word in words)


def of_home(home: Home, *, meant: bool = True) -> Installed | None:
    """The image of the container that a home is a volume of; CouldNotLook where nobody tells.

    None where it is not meant, and the gateway runs in no container.
    """
    engine = docker.engine()
    if docker.inside() and home.path == CONTAINER_HOME:  # every Hermes in a container has that one
        engine = None
    if engine is None and not meant:
        return None
    if engine is None:
        raise CouldNotLook("no container engine can be asked")
    owner = Probes(home).supervision().owner
    if owner is not None and owner.kind == DOCKER:
        return _seen(owner)
    return _seen(_only(engine, home)) if meant else None


def _only(engine: str, home: Home) -> Unit:
    ids = docker.all_of_home(engine, home, docker.PATIENCE)
    if ids is None:
        raise CouldNotLook(f"{engine} gives no answer")
    return docker.only(engine, ids, home)


def is_one(one: Installed) -> bool:
    """Whether it is a container's, and we are not in that."""
    return one.kind == IMAGE and one.where.startswith(_PLACE)


def there(then: Installed) -> Installed | None:
    """What the container of that name is made from now; CouldNotLook where nobody tells."""
    engine, name = docker.engine(), _name(then)
    if engine is None:
        raise CouldNotLook("no container engine can be asked")
    unit = docker.inspect(engine, name, Path("/"), limit=docker.PATIENCE)
    return _seen(unit) if unit else None


def _name(one: Installed) -> str:
    name = one.where.removeprefix(_PLACE)
    if not NAME.fullmatch(name):
        raise CouldNotLook("the record of that update is not one that this tool wrote")
    return name


def _seen(unit: Unit) -> Installed:
    told = unit.settings
    image = told.get("Image", "").removeprefix("sha256:")
    if not image:
        raise CouldNotLook(unit.silence or f"of what image container {unit.name} is cannot be told")
    return Installed(
        version=told.get("Version") or f"image {image[:12]}",
        where=f"{_PLACE}{unit.name}",
        kind=IMAGE,
        revision=image,
        source=told.get("ImageName", ""),
    )


# -- the mark ------------------------------------------------------------------------------


def mark(id: str) -> str:
    """What the image of before an update is called."""
    return f"{_MARK}:{id}"


def keep(one: Installed, id: str, older: Sequence[str]) -> None:
    """Mark the image of before an update; the marks of updates long ago go.

    An image that would be gone with its mark, and could not be fetched again, keeps it.
    """
    engine = docker.engine() or "docker"
    insist([engine, "tag", one.revision or "", mark(id)], env=os.environ, limit=docker.PATIENCE)
    for name in map(mark, older[: 1 - _MARKS]):
        try:
            image = compose.inspected(engine, "image", "inspect", name)
            names = [str(one) for one in (*image["RepoTags"], *image["RepoDigests"])]
            if any(not re.search(rf"(?:^|/){_MARK}[:@]", one) for one in names):
                insist([engine, "rmi", name], env=os.environ, limit=docker.PATIENCE)
        except (CannotFix, KeyError, TypeError):
            continue  # it is gone, or a container is made from it


# -- the way back --------------------------------------------------------------------------


def way_back(home: Home, before: Installed, update: Update) -> list[tuple[str, ...]]:
    """The commands that make the container anew from the image of before; CannotFix, with what
    to do by hand, where that is not for us to do."""
    words = (
        before.version.removeprefix("image "),
        before.source,
        before.where.removeprefix(_PLACE),
    )
    if not (all(map(_REFERENCE.fullmatch, words)) and _HASH.fullmatch(before.revision or "")):
        raise CannotFix("the record of that update is not one that this tool wrote")
    now = of_home(home)
    if now is not None and now.revision == before.revision and not _is_nameless(now, before):
        return []
    engine, image = docker.engine() or "docker", f"an image of Hermes {before.version}"
    try:
        _refuse_unmarked(engine, before, update)
        image = f"image {mark(update.id)} (that was {before.source})"
        made = _made(engine, now, home)
        if made.image != before.source:
            raise CannotFix(f"it was made from {before.source}, and is from {made.image} now")
        compose.refuse_other(engine, made)
    except CannotFix as why:
        data = update.restoring(home)
        raise CannotFix(
            f"container {_name(before)} is for you to make anew, since {why}. Stop it, make it "
            f"from {image}{f', run `{data}`' if data else ''}, and start it"
        ) from None
    left = docker.left(engine, docker.all_of_home(engine, home, docker.PATIENCE) or ())
    return [*((engine, "rm", id) for id in left), *compose.anew(engine, made, mark(update.id))]


def _is_nameless(now: Installed, before: Installed) -> bool:
    """Whether Compose was cut off before it gave the name of the old container to the new one."""
    old, new = (one.where.removeprefix(_PLACE) for one in (before, now))
    return bool(re.fullmatch(rf"[0-9a-f]{{12}}_{re.escape(old)}", new))


def _refuse_unmarked(engine: str, before: Installed, update: Update) -> None:
    """The image must be the marked one: a record alone could name any."""
    try:
        kept = compose.inspected(engine, "image", "inspect", mark(update.id)).get("Id")
    except CannotFix:
        raise CannotFix("its image of before is gone") from None
    if str(kept).removeprefix("sha256:") != before.revision:
        raise CannotFix("its image of before is another than the record of the update names")


def _made(engine: str, now: Installed | None, home: Home) -> compose.Made:
    if now is None or engine != "docker":
        raise CannotFix("it was not made by Docker Compose")
    ids = docker.all_of_home(engine, home, docker.PATIENCE) or []
    if len(ids) - len(docker.left(engine, ids)) > 1:
        raise CannotFix("several containers have this home as a volume")
    made = compose.made(engine, _name(now), home)
    if "@" in made.image:
        raise CannotFix(f"{made.image} is one image for ever")
    return made
