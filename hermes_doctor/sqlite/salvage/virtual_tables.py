"""Find virtual tables that the release does not know, and their shadow tables."""

from __future__ import annotations

from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.catalog import FTS
from hermes_doctor.sqlite.fulltext import FulltextIndex
from hermes_doctor.sqlite.salvage.catalog import SalvagedCatalog, shadow_tables

DERIVED = ("_data", "_idx", "_docsize")
"""Suffixes of a full-text table's shadow tables that can be rebuilt from its text."""


def unknown_virtual_tables(
    catalog: SalvagedCatalog, blueprint: Blueprint
) -> dict[str, FulltextIndex | None]:
    """Virtual tables that the release does not know; with an `Index` if they are FTS5 tables."""
    return {
        name: FulltextIndex(name, sql) if FTS.match(sql) else None
        for name, sql in catalog.virtual.items()
        if name not in blueprint.virtual
    }


def rebuildable_tables(catalog: SalvagedCatalog, blueprint: Blueprint) -> set[str]:
    """The shadow tables that need not be saved, because they are rebuilt."""
    indexes = [
        one
        for one in unknown_virtual_tables(catalog, blueprint).values()
        if one and not one.contentless
    ]
    return shadow_tables([one.name for one in indexes], DERIVED)
