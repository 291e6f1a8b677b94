"""List the open file descriptors of a process."""

from __future__ import annotations

import os

from hermes_doctor.lazy import NamedTuple

DELETED = " (deleted)"


class Descriptor(NamedTuple):
    """One open file descriptor of a process."""

    number: str
    """Empty on systems without /proc."""
    target: str
    """Its target as the kernel writes it: a path, perhaps with ` (deleted)`, or `socket:[7]`."""

    @property
    def path(self) -> str:
        """The path of its target, even if the file was deleted."""
        return self.target.removesuffix(DELETED)


def of(pid: int) -> list[Descriptor] | None:
    """Return the descriptors of a process; None when it has ended or they may not be read."""
    if not os.path.isdir("/proc/self"):
        return _by_psutil(pid)
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except PermissionError:
        return _shown_by_root(pid)
    except OSError:
        return None
    found = []
    for name in names:
        try:
            found.append(Descriptor(name, os.readlink(f"{folder}/{name}")))
        except PermissionError:
            return _shown_by_root(pid)
        except OSError:  # closed since
            continue
    return found


def _shown_by_root(pid: int) -> list[Descriptor] | None:
    """Return what root shows of the descriptors of a process; None if it shows nothing."""
    from hermes_doctor.processes import seen_by_root

    seen = seen_by_root.process(pid)
    return None if seen is None else [Descriptor(*one[:2]) for one in seen["files"]]


def only_reads(pid: int, number: str) -> bool:
    """Whether a descriptor was opened for reading only; False if that is not known."""
    try:
        with open(f"/proc/{pid}/fdinfo/{number}") as file:
            flags = next(line.split()[1] for line in file if line.startswith("flags:"))
    except (OSError, StopIteration, IndexError):
        return False
    return int(flags, 8) & os.O_ACCMODE == os.O_RDONLY


def identity(pid: int, number: str) -> tuple[int, int]:
    """Return device and inode of what a descriptor of a process leads to; OSError if it cannot."""
    try:
        st = os.stat(f"/proc/{pid}/fd/{number}")
    except PermissionError:
        from hermes_doctor.processes import seen_by_root

        if (found := seen_by_root.identity(pid, number)) is None:
            raise
        return found
    return st.st_dev, st.st_ino


def _by_psutil(pid: int) -> list[Descriptor] | None:
    import psutil

    try:
        return [Descriptor("", file.path) for file in psutil.Process(pid).open_files()]
    except (psutil.Error, OSError):
        return None
