"""Let messages go to the address that is meant."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, Safety, Step, do_edits, fix


@fix(id="mend-address", codes=["CFG-BASE-URL"], safety=Safety.CONFIRM)
def mend_address(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Write the address as it must be, or let the one count that is written down."""
    yield from do_edits(probes, finding, "the address that is meant")
