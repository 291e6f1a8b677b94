"""A run that was cut off, by `kill -9` or a power failure, is ended by the next watch that heals.

It may start the gateway again, but only one that the run itself had stopped: that is part of what
was agreed to when the run began.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes_doctor.home import Home
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.probes import Probes
from hermes_doctor.watching.consent import SERVICE

if TYPE_CHECKING:
    from hermes_doctor.journal import Journal

CODE = "RUN-CUTOFF"


def hindrance(home: Home) -> str | None:
    """Why a run that was cut off is not ended now by a watch; None when it may be."""
    from hermes_doctor.handover import ASKED, STOPPED
    from hermes_doctor.journal import Journals

    for journal in Journals(home).all():
        if not journal.final and journal.gateway in (STOPPED, ASKED):
            why = _gateway(home, journal)
            if why:
                return f"run {journal.id} was cut off and {why}"
    return None


def _gateway(home: Home, journal: Journal) -> str | None:
    """The same for the gateway that it had stopped, or asked to end."""
    from hermes_doctor import services

    probes = Probes(home)
    try:
        running = [gateway.pid for gateway in probes.gateways()]
        if journal.asked in running:
            return f"waits for process {journal.asked} to end"
        if running or not os.environ.get(SERVICE) or services.of(probes).keeps:
            return None
    except (CannotFix, CouldNotLook):  # ending it will say so, and leaves the gateway as it is
        return None
    finally:
        probes.close()
    return (
        "had stopped a gateway that nobody owns, which would live inside the watch's own service "
        "if it were started from here; this brings it back: hermes-doctor fix --apply"
    )
