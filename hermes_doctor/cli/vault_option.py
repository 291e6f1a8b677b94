"""Finds the vault for the `backup` commands, and prints their JSON documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from hermes_doctor.cli.options import HomeOption, VaultOption

if TYPE_CHECKING:
    from hermes_doctor.backup.vault import Vault


def vault_of(home: HomeOption, vault: VaultOption) -> Vault:
    """The vault of the home, which may be lost if the vault is elsewhere."""
    from hermes_doctor.backup.vault import Vault
    from hermes_doctor.cli import lost_home

    return Vault(lost_home.find_home(home, elsewhere=vault is not None), vault)


def print_schema_document(kind: str, document: dict[str, Any]) -> None:
    """Print a JSON document with the schema of this kind."""
    from hermes_doctor.render.document import dump

    typer.echo(dump({"schema": f"hermes-doctor/{kind}/1", **document}))
