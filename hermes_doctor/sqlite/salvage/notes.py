"""Describe in sentences what a salvage found and did, apart from the row counts."""

from __future__ import annotations

from hermes_doctor.sqlite.salvage.catalog import SalvagedCatalog
from hermes_doctor.sqlite.salvage.complete_rows import RowCompleter
from hermes_doctor.sqlite.salvage.image import DamagedFile
from hermes_doctor.sqlite.salvage.page_owners import AssignedPages
from hermes_doctor.sqlite.salvage.target import NewDatabase


def notes(
    image: DamagedFile,
    catalog: SalvagedCatalog,
    forest: AssignedPages,
    completer: RowCompleter,
    target: NewDatabase,
) -> list[str]:
    """The notes on a finished salvage."""
    told: list[str] = []
    if not catalog.whole:
        told.append(
            "The list of tables is damaged. Tables that it no longer names and that the release "
            "does not know are not in the new database."
        )
    if image.log.damaged:
        told.append(
            f"The write-ahead log is damaged. Pages of it that are lost: "
            f"{image.log.dropped:,}; used although SQLite would not have read them: "
            f"{image.log.frames_after_damage:,}."
        )
    if forest.skipped_leaves:
        told.append(f"Pages of deleted rows, which stay deleted: {forest.skipped_leaves:,}.")
    unproven = sum(
        one.unknown_rows for name, one in forest.tables.items() if name in target.layouts
    )
    if unproven:
        told.append(
            f"Rows on pages without a parent; they may have been deleted earlier, and no evidence "
            f"of that is left: {unproven:,}."
        )
    if completer.withheld:
        told.append(
            f"Rows that only an index names; they were not restored, because the pages where "
            f"they would be are intact and do not have them: {completer.withheld:,}."
        )
    if completer.transcribed:
        told.append(f"Incomplete messages with text from transcripts: {completer.transcribed:,}.")
    refused = (
        f"{name} is damaged itself and was not used." for name in completer.older_copies.refused
    )
    return [*told, *refused, *target.notes]
