"""What a process has open, by its descriptors."""

from __future__ import annotations

import os

from hermes_doctor.lazy import NamedTuple

DELETED = " (deleted)"


class Descriptor(NamedTuple):
    """One descriptor of a process."""

    number: str
    """Empty where there is no /proc to name it."""
    target: str
    """What it leads to, as the kernel writes it: a path, perhaps deleted, or `socket:[7]`."""

    @property
    def path(self) -> str:
        """The path, whether or not there is still something in that place."""
        return self.target.removesuffix(DELETED)


def of(pid: int) -> list[Descriptor] | None:
    """The descriptors of a process; None when it has ended or they may not be seen."""
    if not os.path.isdir("/proc/self"):
        return _by_psutil(pid)
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return None
    found = []
    for name in names:
        try:
            found.append(Descriptor(name, os.readlink(f"{folder}/{name}")))
        except OSError:  # closed since
            continue
    return found


def _by_psutil(pid: int) -> list[Descriptor] | None:
    import psutil

    try:
        return [Descriptor("", file.path) for file in psutil.Process(pid).open_files()]
    except (psutil.Error, OSError):
        return None
