"""Find keys that are set more than once in one block of config.yaml."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, named, text


@check(id="config-duplicates", group="configuration", codes=["CFG-DUP-KEY"])
def config_duplicates(probes: Probes) -> Iterator[Finding]:
    """Is every key in config.yaml set only once?"""
    document = probes.resolved().world.document
    if document.fault or not document.values:
        raise Skip("config.yaml has no readable settings")
    for twice in document.duplicates:
        used = twice.lines[-1]
        yield Finding(
            code="CFG-DUP-KEY",
            severity=Severity.INFO if twice.same else Severity.WARNING,
            title=text(
                "{setting} is set {number} times in config.yaml",
                setting=named(twice.path),
                number=len(twice.lines),
            ),
            subject=named(twice.path),
            detail=(
                "All lines say the same, so nothing is broken."
                if twice.same
                else text(
                    "Hermes uses only line {line}. It ignores the others and everything that is "
                    "indented below them.",
                    line=used,
                )
            ),
            next=(
                "Keep one of the lines and delete the others."
                if twice.same
                else text("Move what you need to line {line}, and delete the others.", line=used)
            ),
            evidence=tuple(
                Evidence(f"config.yaml:{line}", "used" if line == used else "ignored")
                for line in twice.lines
            ),
        )
