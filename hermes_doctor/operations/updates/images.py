"""Identifies the container image with Hermes, seen from the host, and keeps the previous one.

After a pull, a name such as `latest` means another image. So the image is recorded by its hash,
which never changes, and tagged with a name of ours, the mark: pruning of untagged images does not
delete it, and a record in the home, where others can write, cannot forge it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.backup.records.updates import Update
from hermes_doctor.core.home import CONTAINER_HOME, Home
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system import root_parent
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.installation.details import IMAGE, InstallationDetails, read_details
from hermes_doctor.hermes.installation.find import installation_at
from hermes_doctor.hermes.processes import lineage
from hermes_doctor.hermes.supervisors import docker
from hermes_doctor.hermes.supervisors.units import DOCKER, Unit
from hermes_doctor.operations.updates import compose
from hermes_doctor.repair.gateway.docker import NAME
from hermes_doctor.repair.gateway.manager_commands import run_checked

_ENGINES = ("docker", "docker-compose", "podman", "podman-compose")
_AROUND = ("sudo", "doas", "env", "nice", "ionice", "timeout", "nohup", "time", "sh", "bash", "zsh")
"""Commands that run another command, which is somewhere among their arguments."""
_PLACE = "container "
_MARK = "hermes-doctor/before"
_MARKS = 2
"""How many previous images to keep for a home."""
_HASH = re.compile(r"[0-9a-f]{64}")
_REFERENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@-]*")


def is_container_command(command: Sequence[str]) -> bool:
    """Whether a command works on containers, so that it updates the Hermes in their image."""
    words = list(command[:1])
    if words and os.path.basename(words[0]) in _AROUND:
        words = [word for part in command for word in re.split(r"[\s;&|()]+", part)]
    return any(os.path.basename(word) in _ENGINES for word in words)


def of_home(home: Home, *, required: bool = True) -> InstallationDetails | None:
    """The image of the container that mounts the home; raise CouldNotLook if it is unknown.

    None if `required` is false and the gateway does not run in a container.
    """
    engine = docker.engine()
    if (
        lineage.in_container() and home.path == CONTAINER_HOME
    ):  # every Hermes container uses that path
        engine = None
    if engine is None and not required:
        return None
    if engine is None:
        raise CouldNotLook("no container engine was found")
    probes = Probes(home)
    owner = probes.gateway.supervision().owner
    if owner is not None and owner.kind == DOCKER:
        # only a running gateway tells which of several containers it is
        return _seen(owner if probes.gateway.running() else _only(engine, home))
    return _seen(_only(engine, home)) if required else None


def _only(engine: str, home: Home) -> Unit:
    ids = docker.all_of_home(engine, home, docker.PATIENCE)
    if ids is None:
        raise CouldNotLook("{engine} does not answer", engine=engine)
    return docker.only_container(engine, ids, home)


def is_container_image(details: InstallationDetails) -> bool:
    """Whether Hermes is in a container's image and we are outside of it."""
    return details.kind == IMAGE and details.where.startswith(_PLACE)


def current_image(recorded: InstallationDetails, home: Home) -> InstallationDetails | None:
    """The image that the container of that name has now; raise CouldNotLook if it is unknown."""
    engine, name = docker.engine(), _name(recorded)
    if engine is None:
        raise CouldNotLook("no container engine was found")
    for container in _containers(engine, name, home):
        unit = docker.inspect(engine, container, home.path, limit=docker.PATIENCE)
        if unit is not None and unit.name == name:
            return _seen(unit)
    return None


def _containers(engine: str, name: str, home: Home) -> list[str]:
    """Where to look for a container: root answers a separate process about those of the home."""
    if root_parent.is_separate():
        return docker.all_of_home(engine, home, docker.PATIENCE) or []
    return [name]


def _name(details: InstallationDetails) -> str:
    name = details.where.removeprefix(_PLACE)
    if not NAME.fullmatch(name):
        raise CouldNotLook("the record of the update was not written by hermes-doctor")
    return name


def _seen(unit: Unit) -> InstallationDetails:
    told = unit.settings
    image = told.get("Image", "").removeprefix("sha256:")
    if not image:
        raise CouldNotLook(unit.silence or f"could not find the image of container {unit.name}")
    return InstallationDetails(
        version=told.get("Version") or f"image {image[:12]}",
        where=f"{_PLACE}{unit.name}",
        kind=IMAGE,
        revision=image,
        source=told.get("ImageName", ""),
    )


def mark(id: str) -> str:
    """The tag that keeps the image from before an update."""
    return f"{_MARK}:{id}"


def tag_previous_image(details: InstallationDetails, id: str, older: Sequence[str]) -> None:
    """Tag the image from before an update, and remove the tags of old updates.

    A tag stays if the image has no other name, because it would be deleted and could not be pulled
    again.
    """
    if root_parent.is_separate():
        root_parent.ask_root("tag_previous_image", details.revision, id, list(older))
        return
    engine = docker.engine() or "docker"
    run_checked(
        [engine, "tag", details.revision or "", mark(id)], env=os.environ, limit=docker.PATIENCE
    )
    for name in map(mark, older[: 1 - _MARKS]):
        try:
            image = compose.inspect_object(engine, "image", "inspect", name)
            names = [str(details) for details in (*image["RepoTags"], *image["RepoDigests"])]
            if any(not re.search(rf"(?:^|/){_MARK}[:@]", details) for details in names):
                run_checked([engine, "rmi", name], env=os.environ, limit=docker.PATIENCE)
        except (CannotFix, KeyError, TypeError):
            continue  # it is gone, or a container uses it


def image_rollback(
    home: Home, before: InstallationDetails, update: Update
) -> list[tuple[str, ...]]:
    """The commands that recreate the container from the old image.

    Raise CannotFix with instructions if this tool must not do it.
    """
    words = (
        before.version.removeprefix("image "),
        before.source,
        before.where.removeprefix(_PLACE),
    )
    if not (all(map(_REFERENCE.fullmatch, words)) and _HASH.fullmatch(before.revision or "")):
        raise CannotFix("the record of the update was not written by hermes-doctor")
    now = of_home(home)
    if now is not None and now.revision == before.revision and not _is_nameless(now, before):
        return []
    name, data = _name(now) if now else None, update.restore_command(home)
    recorded = (before.version, before.where, before.source, before.revision)
    if root_parent.is_separate():
        planned = root_parent.ask_root("plan_recreation", *recorded, name, update.id, data)
        return [(*words,) for words in planned]
    engine = docker.engine() or "docker"
    ids = docker.all_of_home(engine, home, docker.PATIENCE) or []
    return plan_recreation(home, engine, ids, before, name, update.id, data)


def plan_recreation(
    home: Home,
    engine: str,
    ids: Sequence[str],
    before: InstallationDetails,
    name: str | None,
    update: str,
    data: str | None,
) -> list[tuple[str, ...]]:
    """The commands for the container of that name, one of these `ids`, which have the home.

    `data` is the command that restores the data from before the update.
    """
    image = f"an image of Hermes {before.version}"
    try:
        _refuse_unmarked(engine, before, update)
        image = f"image {mark(update)} (the previous {before.source})"
        left = docker.unfinished_replacements(engine, ids)
        if name is None or engine != "docker":
            raise CannotFix("it was not created by Docker Compose")
        if len(ids) - len(left) > 1:
            raise CannotFix("several containers use this home")
        existing = compose.inspect_container(engine, name, home, ids)
        if "@" in existing.image:
            raise CannotFix("its image {image} is pinned to a digest", image=existing.image)
        if existing.image != before.source:
            raise CannotFix(
                "it used image {previous} before and uses {image} now",
                previous=before.source,
                image=existing.image,
            )
        compose.refuse_different(engine, existing)
    except CannotFix as why:
        raise CannotFix(
            text(
                "Container {container} cannot be recreated automatically: {reason}. Stop it, "
                "create it from {image}, run `{command}`, and start it.",
                container=_name(before),
                reason=why,
                image=image,
                command=data,
            )
            if data
            else text(
                "Container {container} cannot be recreated automatically: {reason}. Stop it, "
                "create it from {image}, and start it.",
                container=_name(before),
                reason=why,
                image=image,
            )
        ) from None
    return [
        *((engine, "rm", id) for id in left),
        *compose.recreate_commands(engine, existing, mark(update)),
    ]


def _is_nameless(now: InstallationDetails, before: InstallationDetails) -> bool:
    """Whether Compose was interrupted before it gave the old container's name to the new one."""
    old, new = (details.where.removeprefix(_PLACE) for details in (before, now))
    return bool(re.fullmatch(rf"[0-9a-f]{{12}}_{re.escape(old)}", new))


def _refuse_unmarked(engine: str, before: InstallationDetails, update: str) -> None:
    """Raise unless the recorded image is the tagged one: a record alone could name any image."""
    try:
        kept = compose.inspect_object(engine, "image", "inspect", mark(update)).get("Id")
    except CannotFix:
        raise CannotFix("its previous image was removed") from None
    if str(kept).removeprefix("sha256:") != before.revision:
        raise CannotFix("its previous image is not the one in the record of the update")


def hermes_in_place_of(recorded: InstallationDetails, home: Home) -> InstallationDetails | None:
    """The Hermes of a home that is now in the place of `recorded`; None if there is none."""
    if is_container_image(recorded):
        return current_image(recorded, home)
    installed = installation_at(Path(recorded.where))
    return read_details(installed) if installed else None
