"""Copy a file that is only appended to, as it was when it was opened.

A log or a transcript may be written to all the time. But while data is only appended, the part that
existed when the file was opened does not change. That part is copied and read a second time, which
shows whether anything else happened to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.backup.blocks import CHUNK, open_as_owner
from hermes_doctor.system import disk, sparse_files
from hermes_doctor.system.files import snapshot


def copy(path: Path, target: int, progress: disk.Progress | None = None) -> tuple[str, int] | None:
    """Write the current content of a file to an open descriptor; return its SHA-256 and size.

    Returns None if the file was changed in another way than by appending.
    """
    import hashlib

    first, second = hashlib.sha256(), hashlib.sha256()
    with open_as_owner(path) as fd:
        begun = os.fstat(fd)
        is_sparse = sparse_files.is_sparse(begun)
        for chunk in _beginning(fd, begun.st_size):
            first.update(chunk)
            (disk.write_or_skip if is_sparse else disk.write)(target, chunk)
            if progress:
                progress(len(chunk))
        if is_sparse:
            disk.truncate_here(target)
        for chunk in _beginning(fd, begun.st_size):
            second.update(chunk)
        shorter = os.fstat(fd).st_size < begun.st_size
    if shorter or first.digest() != second.digest() or snapshot(path).ino != begun.st_ino:
        return None
    return first.hexdigest(), begun.st_size


def _beginning(fd: int, size: int) -> Iterator[bytes]:
    at = 0
    while at < size and (chunk := os.pread(fd, min(CHUNK, size - at), at)):
        yield chunk
        at += len(chunk)
