"""Handles a lost home: its folder is missing or empty, but its backups are elsewhere."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes_doctor import home as homes
from hermes_doctor.home import Home
from hermes_doctor.model import Trouble


def find_home(option: Path | None, *, elsewhere: bool) -> Home:
    """The home; if it is lost but its backups are elsewhere, the folder that it had."""
    from hermes_doctor.cli.shared_options import named_home
    from hermes_doctor.preferences import effective
    from hermes_doctor.system.files import user_home

    try:
        return homes.find(option)
    except Trouble:
        chosen = effective.load()
        named = named_home(option) or (found.value if (found := chosen.find("home")) else None)
        place = (named or user_home() / ".hermes").expanduser().absolute()
        elsewhere = elsewhere or chosen.vault(Path(os.path.realpath(place))) is not None
        if not elsewhere or not _is_empty(place):
            raise
        return Home(place.resolve(), place)


def _is_empty(place: Path) -> bool:
    if not os.path.lexists(place):
        return place.parent.is_dir()
    try:
        return place.is_dir() and not os.listdir(place)
    except OSError:
        return False


@contextmanager
def recreated_folder(home: Home) -> Iterator[None]:
    """Create the folder of a lost home; remove it again if nothing was put into it."""
    from hermes_doctor.system import disk

    if home.path.is_dir():
        yield
        return
    disk.make_folder(home.path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # it is not empty
            disk.remove_folder(home.path)
