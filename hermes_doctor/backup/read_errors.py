"""Find out whether a failed copy is due to an unreadable file or to an unwritable vault."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from hermes_doctor.backup.manifest import BackupSource
from hermes_doctor.backup.unreadable_files import os_error_reason
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import MEGABYTE, open_regular
from hermes_doctor.system.privileges import as_owner_of_str_path


def why_unreadable(group: Sequence[BackupSource], error: CouldNotLook | OSError) -> str | None:
    """Why a file, or one that belongs to it, cannot be read; None if reading is not the problem.

    A copy error does not say which side failed, so each file is read again alone.
    """
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return os_error_reason(error)
    for source in group:
        if why := _why(source.path_str):
            return why
    cause = error.__cause__ if isinstance(error, CouldNotLook) else None
    return os_error_reason(cause) if isinstance(cause, OSError) else None


def _why(place: str) -> str | None:
    try:
        with as_owner_of_str_path(place) as here:
            fd = open_regular(here, follow=False)
        try:
            while os.read(fd, MEGABYTE):
                pass
        finally:
            os.close(fd)
    except FileNotFoundError:
        return None
    except CouldNotLook as why:
        if isinstance(why.__cause__, OSError):
            return os_error_reason(why.__cause__)
        return str(why).rpartition(": ")[2]
    except OSError as error:
        return os_error_reason(error)
    return None
