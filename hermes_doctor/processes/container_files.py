"""Look at files inside the container of a process, through /proc; nothing runs in it."""

from __future__ import annotations

import os

from hermes_doctor.system.time_zone import zone_of_link


def has_file(pid: int, path: str) -> bool | None:
    """Whether there is such a file for the process; None if we may not look.

    A symlink counts as a file: its target may be a path of the container.
    """
    root = f"/proc/{pid}/root"
    try:
        os.stat(f"{root}/")
        os.lstat(root + path)
    except FileNotFoundError:
        return False if os.path.isdir(f"{root}/") else None
    except NotADirectoryError:
        return False
    except OSError:
        return None
    return True


def time_zone(pid: int) -> str | None:
    """The name of the time zone of the process's container; empty without one, None if unknown."""
    root = f"/proc/{pid}/root"
    try:
        os.stat(f"{root}/")
        return zone_of_link(os.readlink(f"{root}/etc/localtime"))
    except FileNotFoundError:
        return "" if os.path.isdir(f"{root}/") else None
    except OSError:
        return None
