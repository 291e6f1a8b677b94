"""Finds the vault for the `backup` commands, and prints their JSON documents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hermes_doctor.cli.options import HomeOption, VaultOption

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_doctor.backup.archive import ArchiveKeys
    from hermes_doctor.backup.vault import Vault
    from hermes_doctor.home import Home


def run_on_vault(home: HomeOption, vault: VaultOption, work: Callable[[Vault], int]) -> int:
    """Do the work on the vault of a home, as the home's owner if root calls it.

    The home may be lost if the vault is elsewhere.
    """
    from hermes_doctor.backup.vault import Vault
    from hermes_doctor.cli import lost_home, separate_work
    from hermes_doctor.cli.shared_options import absolute

    place = absolute(vault)
    where = lost_home.find_home(home, elsewhere=place is not None)
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
