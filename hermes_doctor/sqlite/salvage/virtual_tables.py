"""Virtual tables that the release does not know, and the tables behind them."""

from __future__ import annotations

from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.catalog import FTS
from hermes_doctor.sqlite.fulltext import Index
from hermes_doctor.sqlite.salvage.catalog import Catalog, shadows

DERIVED = ("_data", "_idx", "_docsize")
"""Behind a full-text table: what can be made anew from the text."""


def virtual(catalog: Catalog, blueprint: Blueprint) -> dict[str, Index | None]:
    """Virtual tables that the release does not know; an index where they are of FTS5."""
    return {
        name: Index(name, sql) if FTS.match(sql) else None
        for name, sql in catalog.virtual.items()
        if name not in blueprint.virtual
    }


def derived(catalog: Catalog, blueprint: Blueprint) -> set[str]:
    """The tables behind them that need not be saved, since they are made anew."""
    indexes = [one for one in virtual(catalog, blueprint).values() if one and not one.contentless]
    return shadows([one.name for one in indexes], DERIVED)
