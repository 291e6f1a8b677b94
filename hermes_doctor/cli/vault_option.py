"""Finds the home and the vault for the `backup` commands; the home may be lost."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hermes_doctor.cli import separate_work
from hermes_doctor.core import home as homes
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.preferences import effective
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.files import user_home

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_doctor.backup.vault.age import ArchiveKeys
    from hermes_doctor.backup.vault.vault import Vault


def run_on_vault(home: Path | None, vault: Path | None, work: Callable[[Vault], int]) -> int:
    """Do the work on the vault of a home, as the home's owner if root calls it.

    The home may be lost if the vault is elsewhere.
    """
    from hermes_doctor.backup.vault.vault import Vault
    from hermes_doctor.cli.option_values import absolute

    place = absolute(vault)
    where = find_home(home, elsewhere=place is not None)
    return separate_work.run(where, lambda: work(Vault(where, place)), vault=place)


def place_of_copy(id: str, home: Home, lock: ArchiveKeys) -> tuple[str, bool]:
    """A backup's id or the path of a copy, and whether only root may be able to read it.

    That is a copy outside of the home, or one that a key of root's decrypts. For a process of the
    owner, which works in another folder, the path is a whole one.
    """
    path = Path(id).expanduser()
    if "/" not in id and not path.is_file():
        return id, False
    path = Path(os.path.abspath(path))
    inside = any(path.is_relative_to(one) for one in (home.path, home.named) if one)
    as_root = not inside or bool(lock.identity or lock.passphrase_file)
    return id if as_root or os.geteuid() else str(path), as_root


def print_schema_document(kind: str, document: dict[str, Any]) -> None:
    """Print a JSON document with the schema of this kind."""
    from hermes_doctor.render.document import dump

    typer.echo(dump({"schema": f"hermes-doctor/{kind}/1", **document}))


def find_home(option: Path | None, *, elsewhere: bool) -> Home:
    """The home; if it is lost but its backups are elsewhere, the folder that it had."""
    from hermes_doctor.cli.option_values import named_home

    try:
        return homes.find(option)
    except Trouble:
        chosen = effective.load()
        named = named_home(option) or (setting.value if (setting := chosen.find("home")) else None)
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
    if home.path.is_dir():
        yield
        return
    disk.make_folder(home.path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # it is not empty
            disk.remove_folder(home.path)
