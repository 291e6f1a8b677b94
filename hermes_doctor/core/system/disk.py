"""Write, rename and remove files: completely, synced to the disk, with the privileges of the owner.

Nothing else in the engine writes, renames or removes. The crash tests rely on that: they kill the
process at each of these calls in turn. Each call drops root's privileges to those of the path's
owner (`privileges`), so that no user can redirect root to a path that he cannot reach himself.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import itertools
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hermes_doctor.core.system import digests, direct_io, privileges, renameat2, sparse_files
from hermes_doctor.core.system.files import Snapshot, StrPath, open_regular, walk
from hermes_doctor.core.system.privileges import as_owner_of, as_owner_of_str_path

CHUNK = 1024 * 1024
_NOT_BY_KERNEL = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)
"""Errors of the kernel when it cannot copy between two files; read and write may still work."""
FEW = 32
"""Up to this number, files and folders are synced one by one."""
DIRECT = 64 * 1024
"""Bytes from which a copy is written with direct I/O; with 256 KB, four times the bytes of small
files are read back after the sync, which takes 0.2 s more of a first backup of 1 GB."""
FILE_MODE = 0o600
FOLDER_MODE = 0o700
Progress = Callable[[int], None]


def write(fd: int, data: bytes | memoryview) -> None:
    """Write all of the data; a full disk raises an error."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync(fd: int) -> None:
    """Sync a file to the disk."""
    os.fsync(fd)


def sync_file(path: Path) -> None:
    """Sync a file that something else wrote, such as SQLite."""
    with _on(path) as fd:
        sync(fd)


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to the disk."""
    with as_owner_of(folder / "_") as here:
        fd = os.open(here.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # unsupported by some network drives
            raise
    finally:
        os.close(fd)


def sync_tree(folder: Path, fresh: Collection[StrPath] | None = None) -> None:
    """Sync everything below a folder: one by one if it is little, else the whole disk at once.

    `fresh` are the files that still need a sync; None means all of them.
    """
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
    """Sync the whole file system of a folder with `syncfs`; return False if it is unsupported."""
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
    """Rename within one folder, atomically; a file with the new name is replaced."""
    with as_owner_of(new) as here:
        os.rename(here.with_name(old.name), here)


def exchange(first: Path, second: Path) -> bool:
    """Swap the files behind two names of one folder atomically; False where that is unsupported."""
    with as_owner_of(second) as here:
        return renameat2.call(here.with_name(first.name), here, renameat2.EXCHANGE)


def rename_to_free(old: Path, new: Path) -> None:
    """Rename within one folder; FileExistsError where the new name is taken."""
    with as_owner_of(new) as here:
        source = here.with_name(old.name)
        if renameat2.call(source, here, renameat2.NOREPLACE):
            return
        if os.path.lexists(here):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(new))
        os.rename(source, here)


def link(old: Path, new: Path) -> None:
    """Make a hard link in the same folder."""
    with as_owner_of(new) as here:
        os.link(here.with_name(old.name), here, follow_symlinks=False)


def link_into_folder(old: StrPath, new: StrPath, *, own: bool = False) -> None:
    """Hard-link a file that will not change into another folder of the same owner.

    `own` skips the comparison of the owners; the caller knows that both folders are its own.
    """
    user = None if own else privileges.of(new)
    if not own and privileges.of(old) != user:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(new))
    if user is None:
        os.link(old, new, follow_symlinks=False)
        return
    with as_owner_of(Path(new)) as here:
        if here != Path(new):  # the folder is reached through a descriptor
            old = here.parent / os.path.relpath(old, Path(new).parent)
        os.link(old, here, follow_symlinks=False)


def make_symlink(target: str, path: Path) -> None:
    """Make a new symlink."""
    with as_owner_of(path) as here:
        os.symlink(target, here)


def set_time(path: Path, mtime_ns: int) -> None:
    """Set the modification time of a file."""
    with as_owner_of(path) as here:
        os.utime(here, ns=(mtime_ns, mtime_ns), follow_symlinks=False)


def remove(path: Path) -> None:
    """Remove a file or a symlink, if it exists."""
    with contextlib.suppress(FileNotFoundError), as_owner_of(path) as here:
        os.unlink(here)


def remove_folder(path: Path) -> None:
    """Remove an empty folder, if it exists."""
    with contextlib.suppress(FileNotFoundError), as_owner_of(path) as here:
        os.rmdir(here)


def set_mode(path: Path, mode: int) -> None:
    """Set the permissions of a file; symlinks are not followed."""
    with as_owner_of(path) as here:
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


def set_owner(
    path: Path, uid: int, gid: int, *, from_root: bool = False, expect: Snapshot | None = None
) -> None:
    """Set the owner of a file, if it is the expected one; symlinks are not followed."""
    privileges.change_owner(path, uid, gid, from_root=from_root, expect=expect)


def make_folder(path: Path, *, durable: bool = True) -> None:
    """Make a private folder and its missing parents; without `durable`, it is not synced."""
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        with as_owner_of(folder) as here:
            try:
                os.mkdir(here, FOLDER_MODE)
            except FileExistsError:  # another worker was faster
                if not os.path.isdir(here):
                    raise
        if durable:
            sync_folder(folder.parent)


@contextmanager
def new_file(path: StrPath, mode: int = FILE_MODE, *, durable: bool = True) -> Iterator[int]:
    """Create a new file and yield its descriptor; it is synced at the end, removed on failure.

    Without `durable` it is not synced here: the code that finishes the file does that.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with as_owner_of_str_path(path) as here:
        fd = os.open(here, flags, mode)
    try:
        yield fd
        if durable:
            sync(fd)
    except BaseException:
        remove(Path(path))
        raise
    finally:
        os.close(fd)


def unnamed_file(folder: Path) -> int:
    """Return a descriptor on a new private file that has no name, so it is gone once closed."""
    if hasattr(os, "O_TMPFILE"):
        with contextlib.suppress(OSError), as_owner_of(folder / "_") as here:
            return os.open(here.parent, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, FILE_MODE)
    path = folder / f".hermes-doctor-{os.urandom(8).hex()}"  # some disks do not support O_TMPFILE
    with new_file(path, durable=False) as fd:
        remove(path)
        return os.dup(fd)


def append(path: Path, data: bytes) -> None:
    """Append to an unfinished file of this tool; it is not synced."""
    with as_owner_of(path) as here:
        fd = os.open(here, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        write(fd, data)
    finally:
        os.close(fd)


def save(path: Path, data: bytes, mode: int = FILE_MODE, *, alone: bool = False) -> None:
    """Write a small file, replacing it atomically; it is private unless another mode is given.

    `alone` says that a lock keeps other commands from writing it.
    """
    save_all(path, [data], mode, alone=alone)


def save_all(
    path: Path, data: Iterable[bytes], mode: int = FILE_MODE, *, alone: bool = False
) -> None:
    """Do the same as `save` with data that comes in chunks."""
    remove_temporary(path, 0.0 if alone else LONGEST_SAVE)
    temp = temporary(path)
    with new_file(temp) as fd:
        for chunk in data:
            write(fd, chunk)
    try:
        if mode != FILE_MODE:
            set_mode(temp, mode)
        rename(temp, path)
    except OSError:
        remove(temp)
        raise
    sync_folder(path.parent)


LONGEST_SAVE = 3600.0
"""Seconds after which a temporary file is certainly one that a killed command left."""
_MOST_NAMES = 10_000


def temporary(path: Path) -> Path:
    """Return a new hidden name beside a path, for what will replace it; it is nobody's file."""
    return path.with_name(
        f"{_temporary_stem(path)}{os.urandom(_RANDOM // 2).hex()}{_TEMPORARY_END}"
    )


def remove_temporary(path: Path, older: float = 0.0) -> None:
    """Remove what killed commands left beside a path under such names.

    Another command may be writing one at this moment; `older` are the seconds that spare it.
    """
    stem, limit = _temporary_stem(path), time.time() - older
    with (
        contextlib.suppress(OSError),
        as_owner_of(path) as here,
        os.scandir(here.parent) as scandir_iterator,
    ):
        names = [dir_entry.name for dir_entry in itertools.islice(scandir_iterator, _MOST_NAMES)]
        for name in names:
            random = name.removeprefix(stem).removesuffix(_TEMPORARY_END)
            ours = len(random) == _RANDOM and not random.strip("0123456789abcdef")
            if ours and name == f"{stem}{random}{_TEMPORARY_END}":
                left = here.with_name(name)
                if os.lstat(left).st_mtime <= limit:
                    os.unlink(left)


_TEMPORARY_END = ".new"
_RANDOM = 16
"""The number of random characters in the name."""


def _temporary_stem(path: Path) -> str:
    return f".{os.fsdecode(os.fsencode(path.name)[:180])}.hermes-doctor-"


def copy(
    source: Path, target: int, progress: Progress | None = None, like: str | None = None
) -> tuple[str, int]:
    """Copy a regular file into an open descriptor; return its digest and its size.

    The digest has the same form as the digest `like`.
    """
    with as_owner_of(source) as here:
        fd = open_regular(here, follow=False)
    with os.fdopen(fd, "rb", buffering=0) as file:
        if sparse_files.is_sparse(os.fstat(fd)):
            return _copy_sparse(fd, target, progress, like)
        return copy_stream(file, target, progress, like=like)


def _copy_sparse(
    source: int, target: int, progress: Progress | None, like: str | None = None
) -> tuple[str, int]:
    """Copy a file with holes into an empty one; return its digest and its size."""
    digest = digests.new_like(like)

    def seen(piece: bytes | memoryview) -> None:
        digest.update(piece)
        if progress:
            progress(len(piece))

    total = sparse_files.copy(source, target, write_at, seen)
    os.lseek(target, total, os.SEEK_SET)
    return digest.hexdigest(), total


def copy_read_back(
    source: StrPath, target: int, progress: Progress | None = None
) -> tuple[str, int, bool]:
    """Copy a file into an empty one and read it back; return digest, size, and if it was verified.

    A large file is written with direct I/O, and each chunk is read back from the disk at once. So
    the file is hashed only once, and it does not evict from a small machine's page cache what a
    gateway reads. A file that is small, sparse or on a disk without direct I/O is not verified.
    """
    with as_owner_of_str_path(source) as here:
        fd = open_regular(here, follow=False)
    with os.fdopen(fd, "rb", buffering=0) as file:
        known = os.fstat(fd)
        most = known.st_size
        if sparse_files.is_sparse(known):
            return (*_copy_sparse(fd, target, progress), False)
        if most < DIRECT or not direct_io.enable_direct_io(target):
            return (*copy_stream(file, target, progress, most), False)
        digest, total, held = digests.sha256(), 0, True
        rooms = direct_io.Buffers.of_thread()
        while total <= most and (count := rooms.fill(fd)):
            padded = rooms.padded(count)
            digest.update(padded[:count])
            held = _write_past_memory(target, padded) and held
            if len(padded) != count:
                os.ftruncate(target, total + count)
            held = held and rooms.matches_disk(target, total, count)
            total += count
            if progress:
                progress(count)
        return digest.hexdigest(), total, held


def _write_past_memory(fd: int, data: memoryview) -> bool:
    """Write all of the data with direct I/O.

    If the disk refuses that, write through the page cache and return False.
    """
    try:
        data = data[os.write(fd, data) :]
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        direct_io.disable_direct_io(fd)
        write(fd, data)
        return False
    write(fd, data)
    return True


def write_or_skip(fd: int, data: bytes | memoryview) -> None:
    """Write the data, but skip zeros, which leaves a hole; call `truncate_here` at the end."""
    if sparse_files.is_empty(data):
        os.lseek(fd, len(data), os.SEEK_CUR)
    else:
        write(fd, data)


def truncate_here(fd: int) -> None:
    """Set the end of a file to the current position, so that skipped zeros at the end count."""
    os.ftruncate(fd, os.lseek(fd, 0, os.SEEK_CUR))


def copy_stream(
    source: IO[bytes],
    target: int,
    progress: Progress | None = None,
    max_bytes: int | None = None,
    like: str | None = None,
    *,
    skip_zeros: bool = False,
) -> tuple[str, int]:
    """Copy a stream into an open descriptor; return its digest, in the form of `like`, and size.

    It stops soon after `max_bytes`, because a file may grow as fast as it is read. With
    `skip_zeros`, long runs of zeros become holes.
    """
    digest = digests.new_like(like)
    total = 0
    while (max_bytes is None or total <= max_bytes) and (chunk := source.read(CHUNK)):
        (write_or_skip if skip_zeros else write)(target, chunk)
        digest.update(chunk)
        total += len(chunk)
        if progress:
            progress(len(chunk))
    if skip_zeros:
        truncate_here(target)
    return digest.hexdigest(), total


def copy_range(source: int, target: int, start: int, length: int) -> None:
    """Copy a range of a file to the same offset in another, inside the kernel where possible.

    If the source is shorter, less is copied. Holes stay holes.
    """
    end = start + length
    if length > 0 and sparse_files.is_sparse(os.fstat(source)):
        for at, piece, is_hole in sparse_files.chunks(source, start, end):
            if not is_hole:
                write_at(target, bytes(piece), at)
            start = at + len(piece)
        if os.fstat(target).st_size < start:
            os.ftruncate(target, start)
        return
    while start < end and (count := _moved(source, target, start, end - start)):
        start += count


def _moved(source: int, target: int, start: int, length: int) -> int:
    """Copy the next bytes and return how many; 0 at the end."""
    if hasattr(os, "copy_file_range"):
        try:
            if count := os.copy_file_range(source, target, length, start, start):
                return count
        except OSError as error:
            if error.errno not in _NOT_BY_KERNEL:
                raise
    chunk = os.pread(source, min(length, CHUNK), start)
    write_at(target, chunk, start)
    return len(chunk)


def write_at(fd: int, data: bytes, offset: int) -> None:
    """Write all of the data at an offset of a file."""
    view = memoryview(data)
    while view:
        count = os.pwrite(fd, view, offset)
        view, offset = view[count:], offset + count


def truncate(fd: int, length: int) -> None:
    """Set the length of a file."""
    os.ftruncate(fd, length)


def keep_end(path: Path, end: bytes) -> None:
    """Overwrite a file in place with its own end, which needs no free space."""
    with as_owner_of_str_path(path) as here:
        fd = os.open(here, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            write_at(fd, end, 0)
            truncate(fd, len(end))
        finally:
            os.close(fd)


def digest(path: StrPath, progress: Progress | None = None, like: str | None = None) -> str:
    """Return the digest of a regular file in the form of `like`, read from the disk if possible."""
    total = digests.new_like(like)
    with as_owner_of_str_path(path) as here:
        fd = open_regular(here, follow=False)
    try:
        for chunk in direct_io.blocks(fd):
            total.update(chunk)
            if progress:
                progress(len(chunk))
    finally:
        os.close(fd)
    return total.hexdigest()


def hash_while_written(path: Path, final_sizes: Iterator[int]) -> list[bytes]:
    """Compute the chunk digests of a file while it is still being written (see `digests`).

    `final_sizes` yields how many bytes are final so far. The file is mapped, because that is
    fastest; a read error of the disk then kills this process, so call it in a worker.
    """
    import mmap

    chunked_digest, at = digests.ChunkedDigest(), 0
    with as_owner_of(path) as here:
        fd = open_regular(here, follow=False)
    try:
        for final in final_sizes:
            if final > at:
                with mmap.mmap(fd, final - at, prot=mmap.PROT_READ, offset=at) as part:
                    chunked_digest.update(part)
                at = final
    finally:
        os.close(fd)
    return chunked_digest.all()


def extended_attributes(path: StrPath) -> dict[str, str]:
    """Return the extended attributes of a file, including access lists: base64 values by name."""
    if not hasattr(os, "listxattr"):
        return {}
    found = {}
    with contextlib.suppress(OSError), as_owner_of_str_path(path) as here:
        for name in os.listxattr(here, follow_symlinks=False):
            if name.startswith(("security.", "trusted.")):  # set by the machine, not by the owner
                continue
            with contextlib.suppress(OSError):
                value = os.getxattr(here, name, follow_symlinks=False)
                found[name] = base64.b64encode(value).decode("ascii")
    return found


def set_extended_attributes(path: Path, attributes: Mapping[str, str]) -> None:
    """Give a new file the extended attributes of the file that it replaces.

    Attributes of security modules are set by the machine itself. Failing to set any other is an
    error, because an access list would be lost.
    """
    for name in set(extended_attributes(path)) - set(attributes):
        if name.startswith("system.posix_acl_"):  # inherited from the folder's default list
            with as_owner_of(path) as here:
                os.removexattr(here, name, follow_symlinks=False)
    for name, value in attributes.items():
        try:
            with as_owner_of(path) as here:
                os.setxattr(here, name, base64.b64decode(value), follow_symlinks=False)
        except OSError:
            if not name.startswith(("security.", "trusted.")):
                raise


@contextmanager
def _on(path: Path) -> Iterator[int]:
    with as_owner_of(path) as here:
        fd = os.open(here, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)
