"""Files of a user that only that user may have written: his shell's, and what it runs."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.model import Trouble
from hermes_doctor.system import privileges


def refuse(path: Path) -> None:
    """Trouble where a file, or what it leads to, is not the effective user's own.

    `sudo -E` keeps the HOME of another: root would write into what that one can exchange.
    """
    real = Path(os.path.realpath(path))
    for one in (path, real):
        whose = privileges.of(one)
        if whose is not None:
            raise Trouble(
                f"{path} is not root's: {whose.folder} belongs to uid {whose.uid}. Run it as that "
                "user, or with root's own HOME (sudo -H). Nothing was changed in it."
            )
        if os.path.lexists(one) and os.lstat(one).st_uid != os.geteuid():
            raise Trouble(
                f"{path} belongs to uid {os.lstat(one).st_uid}, not to you. "
                "Nothing was changed in it."
            )
