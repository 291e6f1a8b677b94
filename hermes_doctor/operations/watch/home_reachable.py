"""Checks, without blocking, that the home exists and is still the same folder."""

from __future__ import annotations

import os
import threading

from hermes_doctor.core import home as homes
from hermes_doctor.core.home import Home

HANGING = 24
"""Most threads of earlier rounds that may hang in the kernel; with more, no new one is started."""
OURS = ("probe-", "check-")
"""How the names of such threads begin."""
REACHABLE = 5.0
"""Seconds within which the home must answer."""


def reach_home(home: Home) -> tuple[str, str]:
    """Return the identity of the home's folder and why it cannot be examined; one is empty."""
    hanging = sum(thread.name.startswith(OURS) for thread in threading.enumerate())
    if hanging > HANGING:
        return "", f"the disk does not answer: {hanging} earlier checks still wait for it"
    found: list[str] = []
    look = threading.Thread(
        target=lambda: found.append(_place(home)), name="probe-home", daemon=True
    )
    look.start()
    look.join(REACHABLE)
    if not found:
        return "", f"the disk of the home did not answer within {REACHABLE:g} s"
    return found[0], "" if found[0] else "the home is missing: it was moved, deleted or unmounted"


def _place(home: Home) -> str:
    """Device and inode of the home's folder; empty if no home is there."""
    if not homes.looks_like_home(home.path):
        return ""
    try:
        st = os.stat(home.path)
    except OSError:
        return ""
    return f"{st.st_dev}:{st.st_ino}"
