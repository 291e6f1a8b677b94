"""Take back a transaction that was cut off."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, Safety, Step, fix, take_back


@fix(id="roll-back", codes=["DB-JOURNAL"], safety=Safety.SAFE, then="salvage-rows")
def roll_back(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Let SQLite play the journal back on a copy, check all of it, and swap it in."""
    yield take_back(probes.home / finding.subject)
