"""Lock a home so that only one run works on it; the lock is on the folder and leaves no file."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.core.message import text
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system import open_files, privileges
from hermes_doctor.core.system.privileges import cache_owners


def holder(home: Home) -> int | None:
    """Return the process that holds this home's lock; 0 if its pid is not visible to us."""
    pids = open_files.lock_holders([home.path]).get(home.path, [])
    return next((pid for pid in pids if pid != os.getpid()), None)


@contextmanager
def lock_home(home: Home) -> Iterator[None]:
    """Hold the home's lock; the kernel releases it even when this process is killed."""
    fd = os.open(home.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _refuse_led_away(home, fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = holder(home)
            raise Trouble(
                text(
                    "Another hermes-doctor (process {pid}) is working on {home}. Nothing was "
                    "changed. Try again when it has finished.",
                    pid=who,
                    home=home.path,
                )
                if who
                else text(
                    "Another hermes-doctor is working on {home}. Nothing was changed. Try again "
                    "when it has finished.",
                    home=home.path,
                )
            ) from None
        except OSError as error:
            raise Trouble(
                "Could not lock {home} ({reason}). Nothing was changed. Correct its "
                "permissions first.",
                home=home.path,
                reason=os.strerror(error.errno or 0).lower(),
            ) from None
        with cache_owners():
            yield
    finally:
        os.close(fd)


def _refuse_led_away(home: Home, fd: int) -> None:
    """Raise Trouble if the open folder is not inside of what belongs to whoever may swap the home.

    Such a user can put a link in the place of the home while its path is resolved, and lead root to
    a home of root's or of a third user.
    """
    user = privileges.of(_named(home))
    if user is not None and not privileges.is_inside_folder_of(user.uid, fd):
        raise _led_away(home, user.uid)


def refuse_name_of_others(home: Home, owner: int) -> None:
    """Raise Trouble if somebody else than the home's owner may swap the home for another one."""
    user = privileges.of(_named(home))
    if user is not None and user.uid != owner:
        raise _led_away(home, user.uid)


def _named(home: Home) -> Path:
    return (home.named or home.path) / "_"


def _led_away(home: Home, uid: int) -> Trouble:
    return Trouble(
        "{named} is in the hands of another user ({uid}) and leads to {home}, which is "
        "not that user's. Nothing was changed. If you mean it: --home {home}",
        named=home.named or home.path,
        uid=uid,
        home=home.path,
    )
