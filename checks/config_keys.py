"""Find misspelled keys in config.yaml, which Hermes ignores."""

from collections.abc import Iterator

from hermes_doctor.api import (
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    misspelt,
    named,
    text,
)


@check(id="config-keys", group="configuration", codes=["CFG-UNKNOWN-KEY"], by_release=True)
def config_keys(probes: Probes) -> Iterator[Finding]:
    """Is every key of config.yaml spelt as Hermes reads it?"""
    world = probes.resolved().world
    if world.document.fault or not world.raw:
        raise Skip("config.yaml holds no settings that can be read")
    for slip in misspelt(world.document, world.release):
        name = named(slip.path)
        yield Finding(
            code="CFG-UNKNOWN-KEY",
            severity=Severity.WARNING,
            title=text(
                "{name} in config.yaml is read by nobody; {meant} is meant, it seems",
                name=name,
                meant=slip.meant,
            ),
            subject=name,
            detail=(
                text(
                    "Hermes passes over keys that it does not know. Rename it to "
                    "{meant} in line {line}.",
                    meant=slip.meant,
                    line=slip.line,
                )
            ),
            evidence=(Evidence(f"config.yaml:{slip.line}", f"{name}, not {slip.meant}"),),
            fix="rename-key",
            data={"path": slip.path, "new": slip.meant},
        )
