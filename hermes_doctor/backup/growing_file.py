"""A file that somebody keeps adding to: what it held at one moment.

A log or a transcript may never stand still for as long as it takes to read. What was in it when it
was opened stays as it is, though, while only more is added; that much is copied, and read a second
time, which shows whether anything else happened to it meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.backup.blocks import CHUNK, opened
from hermes_doctor.system import disk, sparse_files
from hermes_doctor.system.files import snapshot


def copy(path: Path, target: int, progress: disk.Progress | None = None) -> tuple[str, int] | None:
    """Write what a file holds now into an open descriptor; its SHA-256 and size.

    None where it is not only added to.
    """
    import hashlib

    first, second = hashlib.sha256(), hashlib.sha256()
    with opened(path) as fd:
        begun = os.fstat(fd)
        is_sparse = sparse_files.is_sparse(begun)
        for chunk in _beginning(fd, begun.st_size):
            first.update(chunk)
            (disk.write_or_skip if is_sparse else disk.write)(target, chunk)
            if progress:
                progress(len(chunk))
        if is_sparse:
            disk.end_here(target)
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
