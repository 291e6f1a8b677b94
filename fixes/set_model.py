"""Name a model that is there."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, Safety, Step, do_edits, fix


@fix(id="set-model", codes=["CFG-MODEL"], safety=Safety.CONFIRM)
def set_model(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Name the model where the gateway looks for it, or the one that took its place."""
    yield from do_edits(probes, finding, "the model that is meant")
