"""What a gateway writes about itself: pid file, lock, state, heartbeat and the diary of its ends."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple


class Owner(NamedTuple):
    """A process as gateway.pid and gateway.lock name it."""

    pid: int
    start_time: int | None
    """When it began, in the kernel's ticks; a process id alone may be somebody else's by now."""


class PlatformState(NamedTuple):
    """What the gateway last said of one platform."""

    name: str
    state: str
    error_code: str | None
    updated_at: datetime | None


class Beat(NamedTuple):
    """The last heartbeat of an event loop."""

    pid: int
    at: datetime


class Life(NamedTuple):
    """One life of a gateway out of its diary: when it began, when and how it ended."""

    pid: int
    began: datetime
    ended: datetime | None
    how: str
    """`clean`, `failed`, `restart`, or `gone` for one that left no last word."""
    exit_code: int | None = None


class Runtime(NamedTuple):
    """All of it, as far as it is there and can be read."""

    pid_file: Owner | None
    lock_file: Owner | None
    lock_holder: int | None
    """The process that holds gateway.lock by the kernel's word."""
    state: str | None
    """starting, running, degraded, draining, stopped or startup_failed; a claim, no proof."""
    state_owner: Owner | None
    exit_reason: str | None
    restart_requested: bool
    desired_state: str | None
    updated_at: datetime | None
    platforms: Mapping[str, PlatformState]
    beat: Beat | None
    clean_shutdown: bool
    """The marker of an orderly end is there."""
    starts: tuple[datetime, ...]
    """The latest starts, oldest first."""
