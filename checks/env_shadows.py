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
    """Does what config.yaml says about platforms count?"""
    found = probes.resolved()
    document = found.world.document
    if document.fault or not document.values:
        raise Skip("config.yaml holds no settings that can be read")
    for one in shadowed(found):
        name = named(one.path)
        inside = one.source.kind == "env"
        yield Finding(
            code="ENV-SHADOWS-CONFIG",
            severity=Severity.WARNING,
            title=text(
                "{variable} in {place} beats {name} in config.yaml",
                variable=one.variable,
                place=_place(one.source.file),
                name=name,
            ),
            subject=name,
            detail=(
                text("They differ, and {variable} counts. ", variable=one.variable)
                + (
                    "Put a # before it in .env if config.yaml is right, or take the setting out of "
                    "config.yaml."
                    if inside
                    else "Take it out of the service or the container if config.yaml is right."
                )
            ),
            evidence=(
                Evidence(one.source.place, f"{one.variable} counts"),
                Evidence(document.source(*one.path).place, f"{name} does not"),
            ),
            fix="comment-out" if inside else None,
            data={"name": one.variable, "lines": ()},
        )


def _place(file: str | None) -> str:
    return file or "the gateway's environment"
