"""Reports which ways to update Hermes are guarded, and which are not."""

from __future__ import annotations

import os

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Gateway
from hermes_doctor.core.system import root_parent
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.installation import details
from hermes_doctor.hermes.installation.details import GIT, IMAGE
from hermes_doctor.hermes.processes.process_stat import environment
from hermes_doctor.operations.updates import chat_hook, downtime, launcher, shell_startup

INSTALL = "hermes-doctor hook install"


class UpdatePath(NamedTuple):
    """One way to start an update."""

    name: str
    covered: bool
    description: str
    expected: bool = True
    """Whether `hook install` is meant to cover it."""
    next: str = ""
    """The command that guards it."""


def list_ways(home: Home) -> list[UpdatePath]:
    """All ways to update Hermes, and what guards them."""
    return [_shell(home), _chat(home), _others(home)]


def _shell(home: Home) -> UpdatePath:
    name = "hermes update"
    owner = os.stat(home.path).st_uid
    if root_parent.operator() == 0 and owner != 0:
        return UpdatePath(
            name,
            False,
            f"could not check: the home belongs to uid {owner}; run this as that user",
        )
    if launcher.is_from_other_version():
        return UpdatePath(
            name, False, "not guarded: the launcher is of another version", next=INSTALL
        )
    if not launcher.is_installed():
        return UpdatePath(name, False, "not guarded: the launcher is not installed", next=INSTALL)
    if launcher.is_noexec(launcher.folder() / launcher.NAME):
        return UpdatePath(
            name, False, f"not guarded: programs in {launcher.folder()} cannot run (noexec?)"
        )
    doubts = shell_startup.doubts()
    first = launcher.is_first_on_path()
    if doubts:
        if first:
            return UpdatePath(name, False, f"guarded only in this shell: {doubts[0]}")
        return UpdatePath(name, False, f"not guarded: {doubts[0]}")
    if not first:
        return UpdatePath(name, True, "guarded in new shells, not in this one")
    return UpdatePath(name, True, "guarded in this shell and in new ones")


def _chat(home: Home) -> UpdatePath:
    name = "/update in a chat"
    for place in chat_hook.hook_homes(home):
        whose = downtime.gateway_name(place)
        if not chat_hook.is_installed(place, home):
            how = f"not guarded: {whose} has no hook"
            if chat_hook.is_from_other_version(place):
                how = f"not guarded: the hook of {whose} is of another version"
            return UpdatePath(name, False, how, next=INSTALL)
        try:
            running = next(iter(Probes(place).gateway.running()), None)
        except CouldNotLook:
            running = None
        written = os.stat(place / chat_hook.FOLDER / "handler.py").st_mtime
        if running is not None and running.started_at.timestamp() < written:
            how = f"not guarded yet: restart {whose}, which reads its hooks only when it starts"
            return UpdatePath(name, False, how)
        if launcher.is_noexec(place / chat_hook.FOLDER / "bin" / launcher.NAME):
            how = f"not guarded while {whose} writes an answer: programs in "
            return UpdatePath(name, False, f"{how}{place / chat_hook.FOLDER} cannot run (noexec?)")
        if running is not None and not _finds_hermes(running):
            how = f"not guarded while {whose} writes an answer: its PATH has no hermes"
            return UpdatePath(name, False, how)
    return UpdatePath(
        name, True, "guarded by a hook of the gateway and by the launcher on its PATH"
    )


def _others(home: Home) -> UpdatePath:
    """The ways that cannot be guarded automatically."""
    installed = Probes(home).hermes.installation()
    kind = details.read_details(installed).kind if installed else None
    how = {
        GIT: "git pull in the checkout",
        IMAGE: "a new image for the container",
    }.get(kind or "", f"an update with {kind or 'pip'}")
    return UpdatePath(
        how,
        False,
        "not guarded: run its command with update-guard",
        expected=False,
        next="hermes-doctor update-guard -- COMMAND",
    )


def _finds_hermes(gateway: Gateway) -> bool:
    """Whether the gateway was started with a `hermes` on its PATH; true if that is unknown."""
    environ = environment(gateway.pid)
    if not environ:  # also empty for a moment while a program starts
        return True
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    return any(
        os.access(os.path.join(folder, launcher.NAME), os.X_OK) for folder in folders if folder
    )
