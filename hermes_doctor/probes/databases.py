"""Which databases a home has."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.files import snapshot
from hermes_doctor.home import Home


def present(home: Home) -> list[Path]:
    """The databases that are there, in the order of their worth."""
    return [path for path in home.databases() if snapshot(path).kind != "absent"]
