"""Lift the lock that five wrong codes put on pairing."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, Safety, Step, fix, unlock_pairing


@fix(id="clear-lockout", codes=["PAIRING-LOCKOUT"], safety=Safety.CONFIRM)
def clear_lockout(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Take the lock and the count of wrong codes of one platform out of Hermes' own file."""
    yield from unlock_pairing(probes, finding.data["platform"])
