"""Every write of the tool goes through here: complete, on the disk, with the right owner.

Nothing else in the engine writes, renames or removes. The crash tests count on that: they
kill the process at each of these calls in turn. Each is made with the rights of whoever owns
the place (`rights`), so that nobody can lead root where he could not go himself.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import itertools
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hermes_doctor.system import digests, direct_io, privileges, renameat2, sparse_files
from hermes_doctor.system.files import StrPath, open_regular, walk
from hermes_doctor.system.privileges import acting_at, acting_for

CHUNK = 1024 * 1024
_NOT_BY_KERNEL = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)
"""How it says that it cannot copy between two files; reading and writing may work."""
FEW = 32
"""Files and folders up to which each is brought onto the disk by itself."""
DIRECT = 256 * 1024
"""From so many bytes on a copy goes past the memory."""
FILE_MODE = 0o600
FOLDER_MODE = 0o700
Progress = Callable[[int], None]


def write(fd: int, data: bytes | memoryview) -> None:
    """All of the data; a disk that is full raises before anything is renamed."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync(fd: int) -> None:
    """Onto the disk."""
    os.fsync(fd)


def sync_file(path: Path) -> None:
    """What others wrote into a file, onto the disk."""
    with _on(path) as fd:
        sync(fd)


def sync_folder(folder: Path) -> None:
    """The names in a folder onto the disk."""
    with acting_for(folder / "_") as here:
        fd = os.open(here.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network drives cannot
            raise
    finally:
        os.close(fd)


def settle(folder: Path, fresh: Collection[StrPath] | None = None) -> None:
    """Everything below a folder onto the disk; where much is `fresh`, all of its disk at once."""
    few = itertools.islice(walk(folder), FEW + 1)
    count = sum(1 + (len(files) if fresh is None else 0) for _, _, files in few)
    if count + len(fresh or ()) > FEW and _sync_disk(folder):
        return
    for path in fresh or ():
        sync_file(Path(path))
    for base, _, files in walk(folder):
        for file in files if fresh is None else ():
            sync_file(Path(base) / file)
        sync_folder(Path(base))


def _sync_disk(folder: Path) -> bool:
    """Have the kernel write all that it holds for the disk of a folder; whether it can."""
    import ctypes

    ask = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if ask is None:
        return False
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if ask(fd):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(fd)
    return True


def rename(old: Path, new: Path) -> None:
    """Atomically, replacing what is there; within one folder."""
    with acting_for(new) as here:
        os.rename(here.with_name(old.name), here)


def exchange(one: Path, two: Path) -> bool:
    """Swap the files behind two names of one folder atomically; False where that is unsupported."""
    with acting_for(two) as here:
        return renameat2.call(here.with_name(one.name), here, renameat2.EXCHANGE)


def rename_to_free(old: Path, new: Path) -> None:
    """Rename within one folder; FileExistsError where the new name is taken."""
    with acting_for(new) as here:
        source = here.with_name(old.name)
        if renameat2.call(source, here, renameat2.NOREPLACE):
            return
        if os.path.lexists(here):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(new))
        os.rename(source, here)


def link(old: Path, new: Path) -> None:
    """A second name for the same file, in the same folder."""
    with acting_for(new) as here:
        os.link(here.with_name(old.name), here, follow_symlinks=False)


def share(old: StrPath, new: StrPath, *, own: bool = False) -> None:
    """A second name, in another folder of the same owner, for a file that nobody will change.

    `own` is known if both folders are ours.
    """
    user = None if own else privileges.of(new)
    if not own and privileges.of(old) != user:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(new))
    if user is None:
        os.link(old, new, follow_symlinks=False)
        return
    with acting_for(Path(new)) as here:
        if here != Path(new):  # its folder is held by a descriptor
            old = here.parent / os.path.relpath(old, Path(new).parent)
        os.link(old, here, follow_symlinks=False)


def make_symlink(target: str, path: Path) -> None:
    """A symlink that did not exist."""
    with acting_for(path) as here:
        os.symlink(target, here)


def set_time(path: Path, mtime_ns: int) -> None:
    """When a file was last changed."""
    with acting_for(path) as here:
        os.utime(here, ns=(mtime_ns, mtime_ns), follow_symlinks=False)


def remove(path: Path) -> None:
    """A file or a symlink; gone already is fine."""
    with contextlib.suppress(FileNotFoundError), acting_for(path) as here:
        os.unlink(here)


def remove_folder(path: Path) -> None:
    """An empty folder; gone already is fine."""
    with contextlib.suppress(FileNotFoundError), acting_for(path) as here:
        os.rmdir(here)


def set_mode(path: Path, mode: int) -> None:
    """The permissions of a file, never through a symlink."""
    with acting_for(path) as here:
        if os.chmod in os.supports_follow_symlinks:
            os.chmod(here, mode, follow_symlinks=False)
        elif os.path.isdir("/proc/self/fd"):
            fd = os.open(here, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)  # perhaps unreadable
            try:
                os.chmod(f"/proc/self/fd/{fd}", mode)
            finally:
                os.close(fd)
        else:
            with _on(here) as fd:
                os.fchmod(fd, mode)


def set_owner(path: Path, uid: int, gid: int, *, from_root: bool = False) -> None:
    """The owner of a file, never through a symlink."""
    privileges.give(path, uid, gid, from_root=from_root)


def make_folder(path: Path, *, lasting: bool = True) -> None:
    """A private folder, its missing parents included; of one that is not `lasting` see `fresh`."""
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        with acting_for(folder) as here:
            try:
                os.mkdir(here, FOLDER_MODE)
            except FileExistsError:  # a process of ours, at work beside us, was first
                if not os.path.isdir(here):
                    raise
        if lasting:
            sync_folder(folder.parent)


@contextmanager
def fresh(path: StrPath, mode: int = FILE_MODE, *, lasting: bool = True) -> Iterator[int]:
    """A descriptor on a file that did not exist; synced at the end, removed on failure.

    One that is not `lasting` is worked on further: whoever finishes it syncs it.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with acting_at(path) as here:
        fd = os.open(here, flags, mode)
    try:
        yield fd
        if lasting:
            sync(fd)
    except BaseException:
        remove(Path(path))
        raise
    finally:
        os.close(fd)


def nameless(folder: Path) -> int:
    """Return a descriptor on a new private file that has no name, so it is gone once closed."""
    if hasattr(os, "O_TMPFILE"):
        with contextlib.suppress(OSError), acting_for(folder / "_") as here:
            return os.open(here.parent, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, FILE_MODE)
    path = folder / f".hermes-doctor-{os.urandom(8).hex()}"  # some disks know no such files
    with fresh(path, lasting=False) as fd:
        remove(path)
        return os.dup(fd)


def append(path: Path, data: bytes) -> None:
    """Add to a file of the tool's own that is not finished."""
    with acting_for(path) as here:
        fd = os.open(here, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        write(fd, data)
    finally:
        os.close(fd)


def save(path: Path, data: bytes) -> None:
    """A small private file of the tool's own, replaced atomically."""
    save_all(path, [data])


def save_all(path: Path, data: Iterable[bytes]) -> None:
    """The same of a file whose bytes come piece by piece."""
    temp = path.with_name(path.name + ".new")
    remove(temp)
    with fresh(temp) as fd:
        for chunk in data:
            write(fd, chunk)
    try:
        rename(temp, path)
    except OSError:
        remove(temp)
        raise
    sync_folder(path.parent)


def copy(
    source: Path, target: int, progress: Progress | None = None, like: str | None = None
) -> tuple[str, int]:
    """Copy a regular file into an open descriptor; its digest, made `like` another, and size."""
    with acting_for(source) as here:
        fd = open_regular(here, follow=False)
    with os.fdopen(fd, "rb", buffering=0) as file:
        if sparse_files.is_sparse(os.fstat(fd)):
            return _copy_sparse(fd, target, progress, like)
        return drain(file, target, progress, like=like)


def _copy_sparse(
    source: int, target: int, progress: Progress | None, like: str | None = None
) -> tuple[str, int]:
    """Copy a file with holes into an empty one; its digest, made `like` another, and size."""
    digest = digests.like(like)

    def seen(piece: bytes | memoryview) -> None:
        digest.update(piece)
        if progress:
            progress(len(piece))

    total = sparse_files.copy(source, target, place, seen)
    os.lseek(target, total, os.SEEK_SET)
    return digest.hexdigest(), total


def copy_read_back(
    source: StrPath, target: int, progress: Progress | None = None
) -> tuple[str, int, bool]:
    """The same for an empty target; and whether the disk has been seen to hold just that.

    A large file goes past the memory, and each piece of it is read back while it is at hand:
    it is hashed once, and does not push out of a small machine's memory what a gateway reads.
    """
    with acting_at(source) as here:
        fd = open_regular(here, follow=False)
    with os.fdopen(fd, "rb", buffering=0) as file:
        known = os.fstat(fd)
        most = known.st_size
        if sparse_files.is_sparse(known):
            return (*_copy_sparse(fd, target, progress), False)
        if most < DIRECT or not direct_io.past_memory(target):
            return (*drain(file, target, progress, most), False)
        digest, total, held = digests.sha256(), 0, True
        rooms = direct_io.Rooms.of_thread()
        while total <= most and (count := rooms.fill(fd)):
            padded = rooms.padded(count)
            digest.update(padded[:count])
            held = _write_past_memory(target, padded) and held
            if len(padded) != count:
                os.ftruncate(target, total + count)
            held = held and rooms.held_by(target, total, count)
            total += count
            if progress:
                progress(count)
        return digest.hexdigest(), total, held


def _write_past_memory(fd: int, data: memoryview) -> bool:
    """All of the data; through memory, and False, on a disk that takes none of it otherwise."""
    try:
        data = data[os.write(fd, data) :]
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        direct_io.through_memory(fd)
        write(fd, data)
        return False
    write(fd, data)
    return True


def write_or_skip(fd: int, data: bytes | memoryview) -> None:
    """All of the data; zeros become a hole. The end of the file has to be set afterwards."""
    if sparse_files.is_empty(data):
        os.lseek(fd, len(data), os.SEEK_CUR)
    else:
        write(fd, data)


def end_here(fd: int) -> None:
    """Let a file end where it was last written to, or where zeros were skipped."""
    os.ftruncate(fd, os.lseek(fd, 0, os.SEEK_CUR))


def drain(
    source: IO[bytes],
    target: int,
    progress: Progress | None = None,
    most: int | None = None,
    like: str | None = None,
    *,
    skip_zeros: bool = False,
) -> tuple[str, int]:
    """Everything of a stream into an open descriptor; its digest, made `like` another, and size.

    Not much more than `most`: somebody may add to a file as fast as it is read. With `skip_zeros`,
    long runs of zeros become holes.
    """
    digest = digests.like(like)
    total = 0
    while (most is None or total <= most) and (chunk := source.read(CHUNK)):
        (write_or_skip if skip_zeros else write)(target, chunk)
        digest.update(chunk)
        total += len(chunk)
        if progress:
            progress(len(chunk))
    if skip_zeros:
        end_here(target)
    return digest.hexdigest(), total


def transfer(source: int, target: int, start: int, length: int) -> None:
    """Bring a part of a file to the same place in another, inside the kernel where possible.

    Where the source ends before, so does what is brought. Holes stay holes.
    """
    end = start + length
    if length > 0 and sparse_files.is_sparse(os.fstat(source)):
        for at, piece, is_hole in sparse_files.chunks(source, start, end):
            if not is_hole:
                place(target, bytes(piece), at)
            start = at + len(piece)
        if os.fstat(target).st_size < start:
            os.ftruncate(target, start)
        return
    while start < end and (count := _moved(source, target, start, end - start)):
        start += count


def _moved(source: int, target: int, start: int, length: int) -> int:
    """Bring the next bytes over; 0 at the end."""
    if hasattr(os, "copy_file_range"):
        try:
            if count := os.copy_file_range(source, target, length, start, start):
                return count
        except OSError as error:
            if error.errno not in _NOT_BY_KERNEL:
                raise
    chunk = os.pread(source, min(length, CHUNK), start)
    place(target, chunk, start)
    return len(chunk)


def place(fd: int, data: bytes, at: int) -> None:
    """All of the data at one place of a file."""
    view = memoryview(data)
    while view:
        count = os.pwrite(fd, view, at)
        view, at = view[count:], at + count


def cut(fd: int, length: int) -> None:
    """Set the length of a file."""
    os.ftruncate(fd, length)


def digest(path: StrPath, progress: Progress | None = None, like: str | None = None) -> str:
    """That of a regular file, made `like` another; read from the disk where possible."""
    total = digests.like(like)
    with acting_at(path) as here:
        fd = open_regular(here, follow=False)
    try:
        for chunk in direct_io.blocks(fd):
            total.update(chunk)
            if progress:
                progress(len(chunk))
    finally:
        os.close(fd)
    return total.hexdigest()


def pieces_of_arriving(path: Path, arriving: Iterator[int]) -> list[bytes]:
    """The SHA-256 of the pieces of a file while it is written (`digests`).

    `arriving` tells how much of it is final. It is mapped, which costs least; a disk that fails
    kills whoever reads a map.
    """
    import mmap

    found, at = digests.Pieces(), 0
    with acting_for(path) as here:
        fd = open_regular(here, follow=False)
    try:
        for final in arriving:
            if final > at:
                with mmap.mmap(fd, final - at, prot=mmap.PROT_READ, offset=at) as part:
                    found.update(part)
                at = final
    finally:
        os.close(fd)
    return found.all()


def extended(path: StrPath) -> dict[str, str]:
    """The extended attributes of a file (access lists among them), base64 by name."""
    if not hasattr(os, "listxattr"):
        return {}
    found = {}
    with contextlib.suppress(OSError), acting_at(path) as here:
        for name in os.listxattr(here, follow_symlinks=False):
            if name.startswith(("security.", "trusted.")):  # the machine's, not the file's
                continue
            with contextlib.suppress(OSError):
                value = os.getxattr(here, name, follow_symlinks=False)
                found[name] = base64.b64encode(value).decode("ascii")
    return found


def set_extended(path: Path, attributes: Mapping[str, str]) -> None:
    """Give a new file the attributes of the one it replaces.

    Those of the security modules belong to the machine and are set by it; anything else that
    cannot be kept is an error, since an access list would be lost.
    """
    for name in set(extended(path)) - set(attributes):
        if name.startswith("system.posix_acl_"):  # a folder's default list is not the file's own
            with acting_for(path) as here:
                os.removexattr(here, name, follow_symlinks=False)
    for name, value in attributes.items():
        try:
            with acting_for(path) as here:
                os.setxattr(here, name, base64.b64decode(value), follow_symlinks=False)
        except OSError:
            if not name.startswith(("security.", "trusted.")):
                raise


@contextmanager
def _on(path: Path) -> Iterator[int]:
    with acting_for(path) as here:
        fd = os.open(here, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)
