"""The Hermes that is installed now where another one was before an update."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.installation.details import Installed, look
from hermes_doctor.installation.find import at


def hermes_in_place_of(then: Installed) -> Installed | None:
    """The Hermes that is in the place of another one now; None where that is empty."""
    from hermes_doctor.updates import images

    if images.is_one(then):
        return images.there(then)
    found = at(Path(then.where))
    return look(found) if found else None
