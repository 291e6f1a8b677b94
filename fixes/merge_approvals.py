"""Bring people over who were paired in a folder that does not count."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, Safety, Step, fix, merge_pairings


@fix(id="merge-approvals", codes=["PAIRING-ASTRAY"], safety=Safety.CONFIRM)
def merge_approvals(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Write the approved of one platform into the folder that the gateway looks at."""
    yield from merge_pairings(probes, finding.data["platform"])
