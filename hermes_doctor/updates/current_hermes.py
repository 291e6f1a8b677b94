"""Find the Hermes that is installed now in the place of a recorded one."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.installation.details import InstallationDetails, read_details
from hermes_doctor.installation.find import installation_at


def hermes_in_place_of(recorded: InstallationDetails) -> InstallationDetails | None:
    """The Hermes that is now in the place of `recorded`; None if there is none."""
    from hermes_doctor.updates import images

    if images.is_container_image(recorded):
        return images.current_image(recorded)
    found = installation_at(Path(recorded.where))
    return read_details(found) if found else None
