"""Take out what only misleads."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, Safety, Step, do_edits, fix


@fix(id="drop-variable", codes=["ENV-IGNORED"], safety=Safety.CONFIRM)
def drop_variable(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Take a variable out of .env that says what config.yaml decides."""
    yield from do_edits(probes, finding, "Hermes goes by config.yaml")
