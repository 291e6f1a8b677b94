"""Finds the file of the history, without loading anything that only a history needs."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.home import Home
from hermes_doctor.message import text
from hermes_doctor.model import Trouble
from hermes_doctor.supervisors import job_names
from hermes_doctor.supervisors.job_names import PREFIX, state_folder

FILE = "history.db"


def own_file() -> Path:
    """The file that a command of this user writes."""
    return state_folder() / FILE


def files_of(home: Home) -> list[Path]:
    """The existing files that may contain the history of a home: this user's, the service's."""
    places = [own_file(), *_files_of_services(home)]
    return [path for path in dict.fromkeys(places) if os.path.lexists(path)]


def _files_of_services(home: Home) -> list[Path]:
    """The file of the home's system service, if any is installed: its name takes 5 ms to build."""
    try:
        installed = any(name.startswith(PREFIX) for name in os.listdir(job_names.SYSTEM_STATE))
    except OSError:
        return []
    return [job_names.system_state_folder(home) / FILE] if installed else []


def refuse_inside(path: Path, home: Home) -> None:
    """Raise Trouble if the file would be inside the Hermes home, where this tool only looks."""
    if Path(os.path.realpath(path.parent)).is_relative_to(home.path):
        raise Trouble(
            text(
                "The history is not kept inside the Hermes home ({folder}). Set XDG_STATE_HOME to "
                "another folder.",
                folder=path.parent,
            )
        )
