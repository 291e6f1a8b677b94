"""Give a provider the key that is there for it."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, Safety, Step, do_edits, fix


@fix(id="name-key", codes=["PROVIDER-KEY", "CRED-STRANGER"], safety=Safety.CONFIRM)
def name_key(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Name the variable that has the provider's name as the one with its key."""
    yield from do_edits(probes, finding, "the variable that holds its key")
