"""Check that no empty line `NAME=` in .env erases a value that the gateway is started with."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, masked_name, text


@check(id="env-blanks", group="configuration", codes=["ENV-BLANK"], by_release=True)
def env_blanks(probes: Probes) -> Iterator[Finding]:
    """Does .env leave the variables alone that the gateway is started with?"""
    if probes.env() is None:
        raise Skip("there is no .env")
    world = probes.resolved().world
    for name, value in world.readings.dotenv.values.items():
        if value.strip() or not world.started_with.get(name, "").strip():
            continue
        shown = masked_name(name)
        known = name in world.release.names
        yield Finding(
            code="ENV-BLANK",
            severity=Severity.ERROR if known else Severity.WARNING,
            title=text(
                "the blank {shown}= in .env erases the value that the gateway is started with",
                shown=shown,
            ),
            subject=shown,
            detail=(
                "What stands in .env wins over the service, the container and the shell, also when "
                "it is empty. Take the line out."
            ),
            evidence=(
                Evidence(f".env:{value.source.line}", f"{shown} is empty"),
                Evidence("the gateway's environment", f"{shown} has a value"),
            ),
            fix="drop-blank",
            data={"name": name},
        )
