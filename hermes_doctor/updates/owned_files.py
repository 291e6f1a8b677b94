"""Refuses to write shell files that do not belong to the current user."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.message import text
from hermes_doctor.model import Trouble
from hermes_doctor.system import privileges


def refuse_foreign_file(path: Path) -> None:
    """Raise Trouble if the file, or its target, does not belong to the effective user.

    `sudo -E` keeps another user's HOME: root would write to files that this user can replace.
    """
    real = Path(os.path.realpath(path))
    for one in (path, real):
        whose = privileges.of(one)
        if whose is not None:
            raise Trouble(
                text(
                    "{folder} belongs to uid {uid}, not to root, so {path} was not changed. "
                    "Run this as that user, or with root's own HOME (sudo -H).",
                    folder=whose.folder,
                    uid=whose.uid,
                    path=path,
                )
            )
        if os.path.lexists(one) and os.lstat(one).st_uid != os.geteuid():
            raise Trouble(
                text(
                    "{path} belongs to uid {uid}, not to you, so it was not changed.",
                    path=path,
                    uid=os.lstat(one).st_uid,
                )
            )
