"""Reports which ways to update Hermes are guarded, and which are not."""

from __future__ import annotations

import os

from hermes_doctor.home import Home
from hermes_doctor.installation import details
from hermes_doctor.installation.details import GIT, IMAGE
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook, Gateway
from hermes_doctor.probes.probes import Probes
from hermes_doctor.processes.process_stat import environment
from hermes_doctor.updates import chat_hook, launcher, shell_startup

INSTALL = "hermes-doctor hook install"


class UpdatePath(NamedTuple):
    """One way to start an update."""

    name: str
    covered: bool
    description: str
    expected: bool = True
    """Whether `hook install` is meant to cover it."""


def list_ways(home: Home) -> list[UpdatePath]:
    """All ways to update Hermes, and what guards them."""
    return [_shell(home), _chat(home), _others(home)]


def _shell(home: Home) -> UpdatePath:
    name = "hermes update"
    owner = os.stat(home.path).st_uid
    if os.geteuid() == 0 and owner != 0:
        return UpdatePath(
            name, False, f"asked of root's shells; the home is uid {owner}'s: ask as that user"
        )
    if launcher.is_from_other_version():
        return UpdatePath(name, False, f"the launcher is of another hermes-doctor: {INSTALL}")
    if not launcher.is_installed():
        return UpdatePath(name, False, f"no launcher stands before the real one: {INSTALL}")
    if launcher.is_noexec(launcher.folder() / launcher.NAME):
        return UpdatePath(
            name, False, f"nothing can be run in {launcher.folder()} (mounted noexec?)"
        )
    doubts = shell_startup.doubts()
    first = launcher.is_first_on_path()
    if doubts:
        where = "only in this shell: " if first else ""
        return UpdatePath(name, False, f"{where}{doubts[0]}")
    if not first:
        return UpdatePath(name, True, "in new shells; this one has another PATH")
    return UpdatePath(name, True, "the launcher is first on PATH, here and in new shells")


def _chat(home: Home) -> UpdatePath:
    name = "/update in a chat"
    for place in chat_hook.hook_homes(home):
        whose = f"the gateway of {place.profile}" if place.profile else "the gateway"
        if not chat_hook.is_installed(place, home):
            kind = (
                "a hook of another hermes-doctor"
                if chat_hook.is_from_other_version(place)
                else "no hook"
            )
            return UpdatePath(name, False, f"{whose} has {kind} for it: {INSTALL}")
        running = _running(place)
        written = os.stat(place / chat_hook.FOLDER / "handler.py").st_mtime
        if running is not None and running.started_at.timestamp() < written:
            how = f"once {whose} was started anew: it reads its hooks at a start"
            return UpdatePath(name, False, how)
        if launcher.is_noexec(place / chat_hook.FOLDER / "bin" / launcher.NAME):
            how = f"{whose} asks first, but not while it writes an answer: nothing can be run in "
            return UpdatePath(name, False, f"{how}{place / chat_hook.FOLDER} (mounted noexec?)")
        if running is not None and not _finds_hermes(running):
            how = "but not while it writes an answer: there is no hermes on its PATH"
            return UpdatePath(name, False, f"{whose} asks first, {how}")
    return UpdatePath(
        name, True, "the gateway asks first; where it asks no hook, the hermes on its PATH does"
    )


def _others(home: Home) -> UpdatePath:
    """The ways that cannot be guarded automatically."""
    found = Probes(home).installation()
    kind = details.read_details(found).kind if found else None
    how = {
        GIT: "git pull in the checkout",
        IMAGE: "a newer image of the container",
    }.get(kind or "", f"{kind or 'pip'} by hand")
    return UpdatePath(how, False, "only as hermes-doctor update-guard -- COMMAND…", expected=False)


def _running(home: Home) -> Gateway | None:
    try:
        return next(iter(Probes(home).gateways()), None)
    except CouldNotLook:
        return None


def _finds_hermes(gateway: Gateway) -> bool:
    """Whether the gateway was started with a `hermes` on its PATH; true if that is unknown."""
    environ = environment(gateway.pid)
    if environ is None:
        return True
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    return any(os.access(os.path.join(one, launcher.NAME), os.X_OK) for one in folders if one)
