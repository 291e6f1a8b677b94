"""Name the provider that is meant."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, Safety, Step, do_edits, fix


@fix(
    id="correct-provider",
    codes=["CFG-PROVIDER-UNKNOWN", "CFG-BUILTIN-NAME", "CFG-FALLBACK-DEAD"],
    safety=Safety.CONFIRM,
)
def correct_provider(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Write the name of the provider that is meant, or switch it on again."""
    yield from do_edits(probes, finding, "the provider that is meant")
