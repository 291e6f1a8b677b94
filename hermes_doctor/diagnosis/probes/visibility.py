"""Tell whether a gateway may run although none is visible from here.

Normally every process and lock is visible, so what is not seen does not exist. Two things can hide
a gateway: a /proc that hides the processes of other users (hidepid), and a pid namespace of our
own, in which neither the processes nor the locks of the host are visible.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import known_or
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.hermes.processes import process_stat, runtime_files
from hermes_doctor.sqlite import exclusive

if TYPE_CHECKING:
    from hermes_doctor.hermes.processes.runtime_files import Runtime

_LOCK = "gateway.lock"
_FIRST_NAMESPACE = 0xEFFFFFFC
"""The inode of the machine's initial pid namespace."""
_SIGNS = (
    "state/gateway.heartbeat",
    "cron/ticker_heartbeat",
    "gateway_state.json",
    "logs/gateway.log",
)
"""Files that only a gateway writes; the first two at least every minute, in newer releases."""
FRESH = timedelta(minutes=2)
_LAST_LINES = timedelta(seconds=10)
"""For this long after its exit entry a gateway may still write log lines."""
_ELSEWHERE = "the gateway may run in another container, or outside of this one"


def why_unseen(home: Home, runtime: Runtime) -> str:
    """Return why a gateway of this home may run unseen; empty if that is impossible.

    Call it only if no gateway is visible.
    """
    named = [
        owner.pid for owner in (runtime.pid_file, runtime.lock_file, runtime.state_owner) if owner
    ]
    named = named or _last(home)
    for pid in dict.fromkeys([*filter(None, [runtime.lock_holder]), *named]):
        if is_hidden(pid):
            what = "holds gateway.lock" if pid == runtime.lock_holder else "is named as the gateway"
            return f"process {pid} {what}, and you may not see it{_because()}"
    if runtime.lock_holder:  # the lock has only one holder
        return ""
    writer = exclusive.has_writer(home / _LOCK) if _is_apart() else False
    user = exclusive.process_using(home / "state.db")
    if runtime.lock_holder == 0 or user == 0 or (writer is None and _may_hide_another(user)):
        return f"a process that cannot be seen from here has its files open: {_ELSEWHERE}"
    if writer and not _seen_writers(home):
        return f"a process that cannot be seen from here has gateway.lock open: {_ELSEWHERE}"
    if writer is None and (name := _fresh(home)):
        return (
            f"{name} was written just now, and you may not see whether a process has gateway.lock "
            f"open: {_ELSEWHERE}"
        )
    return ""


def _last(home: Home) -> list[int]:
    """Return the last process in the exit diary if it has no exit entry since boot."""
    lives = known_or([], lambda: runtime_files.read_lives(home))
    since = known_or(time.time(), process_stat.boot_time)
    return [life.pid for life in lives[-1:] if not life.ended and life.began.timestamp() > since]


def is_hidden(pid: int) -> bool:
    """Tell whether a process exists that /proc does not show."""
    return process_stat.stat(pid) is None and process_stat.exists(pid)


def _because() -> str:
    """Name the mount option of /proc that hides it, if there is one."""
    option = ""
    try:
        with open("/proc/self/mounts", errors="replace") as file:
            for line in file:
                _, place, kind, options, *_ = line.split()
                if (place, kind) == ("/proc", "proc"):  # the last mount is the visible one
                    option = next((one for one in options.split(",") if "hidepid" in one), "")
    except (OSError, ValueError):
        pass
    return f", since /proc is mounted with {option}: look as root" if option else ": look as root"


def _is_apart() -> bool:
    """Tell whether we are in a pid namespace of our own, by the inode of the initial one."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino != _FIRST_NAMESPACE
    except OSError:
        return False


def _may_hide_another(pid: int | None) -> bool:
    """Tell whether an unseen process may have state.db open besides the one that we see.

    The kernel's lock table omits locks of other pid namespaces. A query about a byte range reports
    them, but names only one process. Our own workers do not count.
    """
    if pid is None or pid <= 0 or pid == os.getpid():
        return False
    stat = process_stat.stat(pid)
    return stat is None or stat.parent != os.getpid()


def _seen_writers(home: Home) -> Iterable[int]:
    """Return the visible processes that have the lock open; none of them is a gateway."""
    from hermes_doctor.diagnosis.probes import database_users

    path = home / _LOCK
    return database_users.writers([path]).get(path, ())


def _fresh(home: Home) -> str:
    """Return a file that a gateway wrote in the last minutes, except during its exit."""
    lives = known_or([], lambda: runtime_files.read_lives(home))
    ended = max((life.ended for life in lives[-1:] if life.ended), default=None)
    now = time.time()
    for name in _SIGNS:
        taken = snapshot(home / name)
        if taken.kind != "file":
            continue
        written = taken.mtime_ns / 1e9
        over = ended is not None and written <= (ended + _LAST_LINES).timestamp()
        if not over and abs(now - written) < FRESH.total_seconds():
            return name
    return ""
