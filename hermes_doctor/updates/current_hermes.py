"""Finds the Hermes that is now installed where an update replaced another one."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.installation.details import Installed, look
from hermes_doctor.installation.find import at


def hermes_in_place_of(then: Installed) -> Installed | None:
    """The Hermes that is now in the place of `then`; None if there is none."""
    from hermes_doctor.updates import images

    if images.is_one(then):
        return images.there(then)
    found = at(Path(then.where))
    return look(found) if found else None
