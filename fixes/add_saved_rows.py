"""Add the messages to the history that only a backup of its deleted write-ahead log has."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, Safety, Step, add_saved_rows as added, fix


@fix(id="add-saved-rows", codes=["DB-SAVED-ROWS"], safety=Safety.CONFIRM, optional=True)
def add_saved_rows(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Add the saved messages to a copy of the database; no message that is there changes."""
    yield added(probes, finding.data["backup"], finding.data["database"])
