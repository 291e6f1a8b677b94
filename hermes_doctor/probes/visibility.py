"""Whether a gateway may run although none is seen: /proc hides some, a container has its own.

On an ordinary machine everybody sees every process and every lock, and what is not seen is not
there. Two things keep us from seeing: a /proc that shows nobody the processes of others
(hidepid), and a pid namespace of our own, in which neither the processes nor the locks of the
machine around us show.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

from hermes_doctor.home import Home
from hermes_doctor.model import CouldNotLook
from hermes_doctor.processes import process_stat
from hermes_doctor.sqlite import exclusive
from hermes_doctor.system.files import snapshot

if TYPE_CHECKING:
    from hermes_doctor.processes.runtime_files import Runtime

_LOCK = "gateway.lock"
_FIRST_NAMESPACE = 0xEFFFFFFC
"""The inode of the pid namespace that the machine began with."""
_SIGNS = (
    "state/gateway.heartbeat",
    "cron/ticker_heartbeat",
    "gateway_state.json",
    "logs/gateway.log",
)
"""What only a gateway writes; the first two every minute at least, in the releases that do."""
FRESH = timedelta(minutes=2)
_LAST_LINES = timedelta(seconds=10)
"""So long after its last word a gateway may still write a line."""
_ELSEWHERE = "the gateway may run in another container, or outside of this one"


def unseen(home: Home, said: Runtime) -> str:
    """Why a gateway of this home may run that we do not see; empty when none can.

    To be asked only where none is seen.
    """
    named = [one.pid for one in (said.pid_file, said.lock_file, said.state_owner) if one]
    named = named or _last(home)
    for pid in dict.fromkeys([*filter(None, [said.lock_holder]), *named]):
        if is_hidden(pid):
            what = "holds gateway.lock" if pid == said.lock_holder else "is named as the gateway"
            return f"process {pid} {what}, and you may not see it{_because()}"
    if said.lock_holder:  # nobody else can have it
        return ""
    writer = exclusive.has_writer(home / _LOCK) if _is_apart() else False
    user = exclusive.user_of(home / "state.db")
    if said.lock_holder == 0 or user == 0 or (writer is None and _may_hide_another(user)):
        return f"a process that cannot be seen from here has its files open: {_ELSEWHERE}"
    if writer and not _seen_writers(home):
        return f"a process that cannot be seen from here has gateway.lock open: {_ELSEWHERE}"
    if writer is None and (name := _fresh(home)):
        return (
            f"{name} was written just now, and whether somebody has gateway.lock open may not be "
            f"asked: {_ELSEWHERE}"
        )
    return ""


def _last(home: Home) -> list[int]:
    """The process that the diary names last, if it left no last word since the machine began."""
    from hermes_doctor.processes import exit_diary

    try:
        lives = exit_diary.read(home)
        since = process_stat.boot_time()
    except CouldNotLook:
        return []
    return [one.pid for one in lives[-1:] if not one.ended and one.began.timestamp() > since]


def is_hidden(pid: int) -> bool:
    """Whether a process is there of which /proc does not even show that it is."""
    return process_stat.stat(pid) is None and process_stat.exists(pid)


def _because() -> str:
    """The setting of /proc that hides it, where it says so."""
    option = ""
    try:
        with open("/proc/self/mounts", errors="replace") as file:
            for line in file:
                _, place, kind, options, *_ = line.split()
                if (place, kind) == ("/proc", "proc"):  # the last one lies on top
                    option = next((one for one in options.split(",") if "hidepid" in one), "")
    except (OSError, ValueError):
        pass
    return f", since /proc is mounted with {option}: look as root" if option else ": look as root"


def _is_apart() -> bool:
    """Whether we are in a pid namespace of our own, by the kernel's number for the first."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino != _FIRST_NAMESPACE
    except OSError:
        return False


def _may_hide_another(pid: int | None) -> bool:
    """Whether an unseen process may have the history open behind one that we see.

    The kernel names no lock of another pid namespace in its table, but it still tells that one
    is there when it is asked about a range of bytes, and then it names one process only. Our own
    looks do not count.
    """
    if pid is None or pid <= 0 or pid == os.getpid():
        return False
    stat = process_stat.stat(pid)
    return stat is None or stat.parent != os.getpid()


def _seen_writers(home: Home) -> Iterable[int]:
    """Who has the lock open among those that we see: none of them is a gateway."""
    from hermes_doctor.probes import database_users

    path = home / _LOCK
    return database_users.writers([path]).get(path, ())


def _fresh(home: Home) -> str:
    """What a gateway wrote within the last minutes, and not on its way out."""
    from hermes_doctor.processes import exit_diary

    try:
        lives = exit_diary.read(home)
    except CouldNotLook:
        lives = []
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
