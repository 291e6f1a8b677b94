"""Find the file system that a path is on, its free space, and the users who may write to a file."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE, Snapshot, reason

_TABLE = Path("/proc/self/mountinfo")
_GET_MARKS = 0x80086601
_UNCHANGEABLE = 0x10 | 0x20
_REMOTE = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "glusterfs", "lustre"),
        *("9p", "virtiofs", "drvfs", "vboxsf", "prl_fs", "vmhgfs", "fakeowner", "osxfs", "fuse"),
    )
)
"""Network file systems, and those that show a host's files to a virtual machine or container."""


class Mount(NamedTuple):
    """One mounted file system."""

    point: Path
    kind: str

    @property
    def is_unreliable(self) -> bool:
        """Whether locks and shared memory on it are unreliable."""
        return self.kind in _REMOTE or self.kind.startswith("fuse.")


def mount_of(path: Path) -> Mount | None:
    """Return the file system that a path is on; None if it cannot be read."""
    try:
        lines = _TABLE.read_text(errors="surrogateescape").splitlines()
        real = path.resolve()
    except (OSError, RuntimeError):
        return None
    depths = {str(folder): len(folder.parts) for folder in (real, *real.parents)}
    best, deepest = None, 1
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        point = fields[4]
        for code, sign in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
            point = point.replace(code, sign)
        depth = depths.get(point, 0)
        if depth >= deepest:  # of two at the same point, the later one hides the other
            best, deepest = Mount(Path(point), after.split(" ")[0]), depth
    return best


class FileUser(NamedTuple):
    """The uid and groups that a gateway runs with."""

    uid: int
    gids: frozenset[int]

    def may_write(self, snapshot: Snapshot) -> bool:
        """Whether the mode of a file lets this user write it."""
        if self.uid == 0:
            return True
        if snapshot.uid == self.uid:
            return bool(snapshot.mode & 0o200)
        return bool(snapshot.mode & (0o020 if snapshot.gid in self.gids else 0o002))

    def may_enter(self, st: os.stat_result) -> bool:
        """Whether the mode of a folder lets this user pass through it."""
        if self.uid == 0:
            return True
        if st.st_uid == self.uid:
            return bool(st.st_mode & 0o100)
        return bool(st.st_mode & (0o010 if st.st_gid in self.gids else 0o001))


def user_of(pid: int) -> FileUser:
    """Return the user that a process runs as."""
    try:
        with open(f"/proc/{pid}/status") as status:
            fields = dict(line.rstrip("\n").split(":", 1) for line in status if ":" in line)
        uid = int(fields["Uid"].split()[1])
        gids = {int(fields["Gid"].split()[1]), *map(int, fields.get("Groups", "").split())}
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise CouldNotLook("could not read the user of process {pid}", pid=pid) from error
    return FileUser(uid, frozenset(gids))


def owner_of(folder: Path) -> FileUser:
    """Return the owner of a home, who most likely also starts its gateway."""
    try:
        st = os.stat(folder)
    except OSError as error:
        raise CouldNotLook("could not read the owner of the home") from error
    return FileUser(st.st_uid, frozenset({st.st_gid}))


def is_mount(path: Path) -> bool:
    """Whether the path is a mount point, as containers use for files: rename cannot replace it."""
    try:
        table = Path("/proc/self/mountinfo").read_text()
    except OSError:
        return False
    escaped = str(path).replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011")
    return any(line.split(" ")[4] == escaped for line in table.splitlines())


def is_immutable(path: Path) -> bool:
    """Whether the file has the immutable or append-only attribute, which stops even root."""
    import fcntl
    import struct

    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        marks = fcntl.ioctl(fd, _GET_MARKS, bytes(8))
        return bool(struct.unpack("q", marks)[0] & _UNCHANGEABLE)
    except OSError:  # a file system without these attributes
        return False
    finally:
        os.close(fd)


class Space(NamedTuple):
    """The size and free space of a file system, for a user who is not root."""

    total: int
    free: int
    inodes: int
    """0 where the file system has no fixed number of them."""
    inodes_free: int
    read_only: bool


def free_space(folder: Path) -> Space:
    """Measure the disk of a folder; blocks that are reserved for root do not count as free."""
    if not hasattr(os, "statvfs"):
        import shutil

        usage = shutil.disk_usage(folder)
        return Space(usage.total, usage.free, 0, 0, read_only=False)
    try:
        told = os.statvfs(folder)
    except OSError as error:
        raise CouldNotLook(reason(error, folder)) from error
    return Space(
        total=told.f_blocks * told.f_frsize,
        free=told.f_bavail * told.f_frsize,
        inodes=told.f_files,
        inodes_free=told.f_favail,
        read_only=bool(told.f_flag & os.ST_RDONLY),
    )


def lacks_room(room: Space) -> bool:
    """Whether Hermes cannot save messages: less than 16 MB, or less than 16 inodes, is free."""
    return room.free < 16 * MEGABYTE or (room.inodes > 0 and room.inodes_free < 16)


def is_full(room: Space) -> bool:
    """Whether the disk is practically full: less than 1 MB, or less than 2 inodes, is free."""
    return room.free < MEGABYTE or (room.inodes > 0 and room.inodes_free < 2)
