"""Check the files with trusted certificates (CA bundles)."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE, open_regular

_MARK = b"-----BEGIN "
"""Also matches OpenSSL's "trusted certificate" form."""


def fault(named: str, pid: int | None) -> str | None:
    """Return what is wrong with a CA bundle as the process sees it; None if nothing is."""
    path = Path(named).expanduser()
    if not path.is_absolute():
        raise CouldNotLook("the path is relative, so only the gateway knows where it is")
    if pid is not None and os.path.isdir(f"/proc/{pid}/root/"):
        path = Path(f"/proc/{pid}/root") / path.relative_to("/")
    if path.is_dir():
        return None if any(path.iterdir()) else "is an empty folder"
    try:
        fd = open_regular(path)
    except FileNotFoundError:
        return "does not exist"
    try:
        head = os.pread(fd, MEGABYTE, 0)
    finally:
        os.close(fd)
    if not head:
        return "is empty"
    return None if _MARK in head else "holds no certificate"
