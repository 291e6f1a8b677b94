"""Refuse to install a job for a home that will not last."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.message import text
from hermes_doctor.model import CannotFix

_PASSING = ("/tmp", "/var/tmp", "/dev/shm")


def refuse_temporary_home(home: Path) -> None:
    """Refuse a home in a temporary folder: after the next boot its service would only fail."""
    import tempfile

    for place in (*_PASSING, tempfile.gettempdir()):
        if home.is_relative_to(os.path.realpath(place)):
            raise CannotFix(
                text(
                    "The home is in the temporary folder {folder}. Move it before you install a "
                    "service.",
                    folder=place,
                )
            )
