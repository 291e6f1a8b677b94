"""Bring somebody over who was paired in a folder that does not count."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, Safety, Step, fix, move_pairing


@fix(id="merge-approvals", codes=["PAIRING-ASTRAY"], safety=Safety.CONFIRM, personal=True)
def merge_approvals(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Bring one of the approved into the folder that the gateway looks at."""
    yield from move_pairing(probes, finding.data["platform"], finding.data["user"])
