"""Find keys that are set more than once in one block of config.yaml."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, named, text


@check(id="config-duplicates", group="configuration", codes=["CFG-DUP-KEY"])
def config_duplicates(probes: Probes) -> Iterator[Finding]:
    """Does every key stand in config.yaml once?"""
    document = probes.resolved().world.document
    if document.fault or not document.values:
        raise Skip("config.yaml holds no settings that can be read")
    for twice in document.duplicates:
        *lost, counts = twice.lines
        lines = " and ".join(map(str, lost))
        yield Finding(
            code="CFG-DUP-KEY",
            severity=Severity.INFO if twice.same else Severity.WARNING,
            title=(
                text(
                    "{named} stands {number} times in config.yaml, ",
                    named=named(twice.path),
                    number=len(twice.lines),
                )
                + (
                    "each time the same"
                    if twice.same
                    else text("and only line {counts} counts", counts=counts)
                )
            ),
            subject=named(twice.path),
            detail=(
                text(
                    "What line {lines} says is not read, with all that is indented "
                    "below it. Move what you need from there to line {counts} and take "
                    "the rest out.",
                    lines=lines,
                    counts=counts,
                )
            ),
            evidence=tuple(
                Evidence(f"config.yaml:{line}", "counts" if line == counts else "is not read")
                for line in twice.lines
            ),
        )
