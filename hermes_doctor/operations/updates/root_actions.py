"""What root does for a process that updates another user's home.

This page is the whole list. Git runs as the owner of the home, because a checkout names programs
that it runs. The rest is for a Hermes in a container. Who may talk to the container engine controls
the machine, so root itself finds the containers of the home, plans what is done with them, and runs
nothing else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system.accounts import account
from hermes_doctor.core.system.separate_process import Action
from hermes_doctor.diagnosis.probes.root_actions import Containers
from hermes_doctor.hermes.installation.details import IMAGE, InstallationDetails
from hermes_doctor.hermes.supervisors import docker
from hermes_doctor.operations.updates import git_rollback, images
from hermes_doctor.operations.updates.rollback import LIMIT
from hermes_doctor.repair.gateway.manager_commands import run_command

_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{1,8}")
"""An update's id, which becomes the tag of an image."""


def actions(home: Path, owner: int) -> Mapping[str, Action]:
    """The actions for a process of this user that updates this home or takes an update back."""
    root = _Root(home, owner)
    return {
        "tag_previous_image": root.tag,
        "plan_recreation": root.plan,
        "recreate": root.run,
        "git": lambda words: _git(owner, words),
    }


class _Root:
    """Root's part of the update of one home."""

    def __init__(self, home: Path, owner: int) -> None:
        self._home = Home(home)
        self._containers = Containers(home, owner)
        self._planned: list[tuple[str, ...]] = []

    def tag(self, image: str, id: str, older: Sequence[str]) -> None:
        """Tag the image of a container of the home, and remove the tags of old updates."""
        engine, ids = self._found()
        units = [docker.inspect(engine, one, self._home.path, docker.PATIENCE) for one in ids]
        used = {unit.settings["Image"].removeprefix("sha256:") for unit in units if unit}
        if image not in used:
            raise CannotFix("No container of this home has that image.")
        details = InstallationDetails("", "", IMAGE, revision=str(image))
        images.tag_previous_image(details, _update(id), [*map(_update, older)])

    def plan(
        self,
        version: str,
        where: str,
        source: str,
        revision: str,
        name: str | None,
        update: str,
        data: str | None,
    ) -> list[tuple[str, ...]]:
        """Plan how the container gets its previous image back; only this is run later."""
        engine, ids = self._found()
        before = InstallationDetails(version, where, IMAGE, revision=revision, source=source)
        self._planned = images.plan_recreation(
            self._home, engine, ids, before, name, _update(update), data
        )
        return self._planned

    def run(self, words: Sequence[str], *, descriptors: tuple[int]) -> list[object]:
        """Run a command that was planned, which keeps the lock of the update open."""
        command = (*words,)
        if command not in self._planned:
            raise CannotFix("Root runs only what it has planned.")
        return [*run_command(command, env=os.environ, limit=LIMIT, pass_fds=descriptors)]

    def _found(self) -> tuple[str, list[str]]:
        return docker.engine() or "docker", self._containers.find(docker.PATIENCE) or []


def _git(owner: int, words: Sequence[str]) -> list[object]:
    """Run git as the owner, in root's own mounts and with the variables of a login."""
    if list(words[:2]) != ["git", "-C"]:
        raise CannotFix("Root runs only git.")
    return [*git_rollback.run_git([*map(str, words)], account(owner))]


def _update(id: str) -> str:
    if not _ID.fullmatch(str(id)):
        raise CannotFix("The record of the update was not written by hermes-doctor.")
    return str(id)
