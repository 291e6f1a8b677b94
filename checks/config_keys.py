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
    """Does Hermes know every key of config.yaml?"""
    world = probes.resolved().world
    if world.document.fault or not world.raw:
        raise Skip("config.yaml has no readable settings")
    for slip in misspelt(world.document, world.release):
        name = named(slip.path)
        yield Finding(
            code="CFG-UNKNOWN-KEY",
            severity=Severity.WARNING,
            title=text("unknown setting {setting} in config.yaml", setting=name),
            subject=name,
            detail=text('Hermes ignores it. Did you mean "{right}"?', right=slip.meant),
            evidence=(Evidence(f"config.yaml:{slip.line}", f"{slip.path[-1]}:"),),
            fix="rename-key",
            data={"path": slip.path, "new": slip.meant},
        )
