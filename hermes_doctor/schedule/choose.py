"""Chooses the manager that runs a job on this machine: systemd, launchd or cron."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import CannotFix, Trouble
from hermes_doctor.schedule.jobs import JobManager


class Kinds(NamedTuple):
    """The class to use for each kind of manager."""

    cron: Callable[[], JobManager]
    launchd: Callable[..., JobManager]
    systemd: Callable[..., JobManager]


def choose(home: Home, *, system: bool, cron: bool, kinds: Kinds | None = None) -> JobManager:
    """Choose the manager for a home; raise Trouble if there is none."""
    from hermes_doctor.schedule import crontab, launchd, systemd

    kinds = kinds or Kinds(crontab.Cron, launchd.Launchd, systemd.Systemd)
    _refuse_strangers(home, system=system)
    if cron:
        return kinds.cron()
    if sys.platform == "darwin":
        return kinds.launchd(system=system)
    try:
        return kinds.systemd(system=system)
    except CannotFix as why:
        if system:
            raise Trouble(
                text("{reason}. Nothing was changed.", reason=str(why).rstrip("."))
            ) from None
        return kinds.cron()


def _refuse_strangers(home: Home, *, system: bool) -> None:
    """Raise if a user's own manager would run a job for another user's home."""
    owner = os.stat(home.path).st_uid
    if system and os.geteuid() != 0:
        raise Trouble("--system installs for the whole machine and needs root. Run this with sudo.")
    if not system and os.geteuid() != owner:
        raise Trouble(
            text(
                "{home} belongs to another user (uid {uid}). Run this as that user, or "
                "with sudo and --system.",
                home=home.path,
                uid=owner,
            )
        )
