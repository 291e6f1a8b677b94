"""Finds the home and the vault for the `backup` commands; the home may be lost."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hermes_doctor.cli import separate_work
from hermes_doctor.core import home as homes
from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import EMPTY
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.preferences import effective
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.files import user_home

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_doctor.backup.vault.age import ArchiveKeys, NamedCopy
    from hermes_doctor.backup.vault.vault import Vault
    from hermes_doctor.core.system.separate_process import Action


def run_on_vault(home: Path | None, vault: Path | None, work: Callable[[Vault], int]) -> int:
    """Do the work on the vault of a home, as the home's owner if root calls it.

    The home may be lost if the vault is elsewhere.
    """
    from hermes_doctor.backup.vault.vault import Vault
    from hermes_doctor.cli.option_values import absolute

    place = absolute(vault)
    where = find_home(home, elsewhere=place is not None)
    return separate_work.run(where, lambda: work(Vault(where, place)), vault=place)


@contextmanager
def named_copy(
    name: str, home: Home, keys: ArchiveKeys
) -> Iterator[tuple[NamedCopy, Mapping[str, Action]]]:
    """Yield the copy that the operator has named, and what root does for a process of the owner."""
    from hermes_doctor.backup.vault.age import NamedCopy
    from hermes_doctor.cli import separate_look

    copy = NamedCopy(name, keys)
    owner = separate_look.owner_of(home.path) if home.path.is_dir() else None
    if owner is None:
        yield copy, EMPTY
        return
    from hermes_doctor.backup.vault import copy_of_root

    with copy_of_root.opened(copy, home, owner) as found:
        yield found


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
    """Create the folder of a lost home; remove it again if nothing was put into it.

    Root creates it with the rights of the user to whom the folder above it belongs, and that user
    then is its owner: his links lead to no place where he could not create it himself.
    """
    if home.path.is_dir():
        yield
        return
    disk.make_folder(home.named or home.path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # it is not empty
            disk.remove_folder(home.path)
