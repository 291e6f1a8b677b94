"""Choose the manager that runs a job, and refuse a home that will not last."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CannotFix, Trouble
from hermes_doctor.repair.schedule import managers
from hermes_doctor.repair.schedule.jobs import JobManager

_PASSING = ("/tmp", "/var/tmp", "/dev/shm")


class Kinds(NamedTuple):
    """The class to use for each kind of manager."""

    cron: Callable[[], JobManager]
    launchd: Callable[..., JobManager]
    systemd: Callable[..., JobManager]


def choose(home: Home, *, system: bool, cron: bool, kinds: Kinds | None = None) -> JobManager:
    """Choose the manager for a home; raise Trouble if there is none."""
    kinds = kinds or Kinds(managers.Cron, managers.Launchd, managers.Systemd)
    owner = os.stat(home.path).st_uid
    if system and os.geteuid() != 0:
        raise Trouble("--system installs for the whole machine and needs root. Run this with sudo.")
    if not system and os.geteuid() != owner:
        raise Trouble(
            "{home} belongs to another user (uid {uid}). Run this as that user, or "
            "with sudo and --system.",
            home=home.path,
            uid=owner,
        )
    if cron:
        return kinds.cron()
    if sys.platform == "darwin":
        return kinds.launchd(system=system)
    try:
        return kinds.systemd(system=system)
    except CannotFix as why:
        if system:
            raise Trouble("{reason}. Nothing was changed.", reason=str(why).rstrip(".")) from None
        return kinds.cron()


def refuse_temporary_home(home: Path) -> None:
    """Refuse a home in a temporary folder: after the next boot its service would only fail."""
    import tempfile

    for place in (*_PASSING, tempfile.gettempdir()):
        if home.is_relative_to(os.path.realpath(place)):
            raise CannotFix(
                "The home is in the temporary folder {folder}. Move it before you install a "
                "service.",
                folder=place,
            )
