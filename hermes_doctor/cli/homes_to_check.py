"""Find the homes that `check` examines; as root, look into those of others as their owners."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor import home as homes
from hermes_doctor.home import Home
from hermes_doctor.model import CouldNotLook, Trouble

if TYPE_CHECKING:
    from hermes_doctor.processes.gateway_processes import Candidate


def find(option: Path | None, *, every: bool) -> list[Home]:
    """Return the home that is meant, or also those beside it and those of running gateways."""
    if not every:
        return [homes.find(option)]
    from hermes_doctor.processes import gateway_processes

    used = gateway_processes.homes_in_use(_works)
    try:
        roots = [homes.find(option).path, *used]
    except Trouble:
        if not used or option:
            raise
        roots = used
    return [Home(path) for path in dict.fromkeys(one for root in roots for one in _beside(root))]


def _works(candidate: Candidate) -> bool:
    """Whether a process works as a gateway, which the files of its home may have to say."""
    from hermes_doctor.cli import separate_look

    if candidate.claim is None or candidate.claim.locked is not False:
        return candidate.works
    try:
        return separate_look.look(candidate.claim.home, lambda: candidate.works)
    except (CouldNotLook, Trouble):
        return True


def _beside(root: Path) -> list[Path]:
    """Return this home and the others of the same root."""
    from hermes_doctor.cli import separate_look

    try:
        return separate_look.look(root, lambda: [one.path for one in homes.all_homes(None, [root])])
    except (CouldNotLook, Trouble):
        return [root]
