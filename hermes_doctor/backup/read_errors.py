"""Find out whether a failed copy is due to an unreadable file or to an unwritable vault."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from hermes_doctor.backup.manifest import Source
from hermes_doctor.backup.unreadable_files import because
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import MEGABYTE, open_regular
from hermes_doctor.system.privileges import acting_at


def unreadable(group: Sequence[Source], error: CouldNotLook | OSError) -> str | None:
    """Why a file, or one that belongs to it, cannot be read; None if reading is not the problem.

    A copy error does not say which side failed, so each file is read again alone.
    """
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return because(error)
    for source in group:
        if why := _why(source.place):
            return why
    cause = error.__cause__ if isinstance(error, CouldNotLook) else None
    return because(cause) if isinstance(cause, OSError) else None


def _why(place: str) -> str | None:
    try:
        with acting_at(place) as here:
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
            return because(why.__cause__)
        return str(why).rpartition(": ")[2]
    except OSError as error:
        return because(error)
    return None
