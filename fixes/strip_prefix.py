"""Send the model's name as its provider knows it."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, Safety, Step, do_edits, fix


@fix(id="strip-prefix", codes=["CFG-MODEL-PREFIX"], safety=Safety.CONFIRM)
def strip_prefix(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Take the provider's name off the model's name."""
    yield from do_edits(probes, finding, "the model without the provider's name")
