"""Check that no environment variable overrides a different platform setting in config.yaml."""

from collections.abc import Iterator

from hermes_doctor.api import (
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    named,
    shadowed,
    text,
)


@check(id="env-shadows", group="configuration", codes=["ENV-SHADOWS-CONFIG"], by_release=True)
def env_shadows(probes: Probes) -> Iterator[Finding]:
    """Does Hermes use the platform settings in config.yaml?"""
    found = probes.resolved()
    document = found.world.document
    if document.fault or not document.values:
        raise Skip("config.yaml has no readable settings")
    for one in shadowed(found):
        name = named(one.path)
        inside = one.source.kind == "env"
        yield Finding(
            code="ENV-SHADOWS-CONFIG",
            severity=Severity.WARNING,
            title=text("{variable} overrides {setting}", variable=one.variable, setting=name),
            subject=name,
            detail=(
                "The values differ. Hermes uses the one in .env and ignores config.yaml."
                if inside
                else "The values differ. Hermes uses the one in the environment of the gateway and "
                "ignores config.yaml."
            ),
            next=(
                "If the value in .env is right, delete the setting in config.yaml instead."
                if inside
                else "If config.yaml is right, remove the variable from the service or container."
            ),
            evidence=(
                Evidence(one.source.place, text("{name} (used)", name=one.variable)),
                Evidence(document.source(*one.path).place, text("{name} (ignored)", name=name)),
            ),
            fix="comment-out" if inside else None,
            data={"name": one.variable, "lines": ()},
        )
