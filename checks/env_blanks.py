"""Check that no empty line `NAME=` in .env erases a value that the gateway is started with."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, masked_name, text


@check(id="env-blanks", group="configuration", codes=["ENV-BLANK"], by_release=True, needs="env")
def env_blanks(probes: Probes) -> Iterator[Finding]:
    """Does .env keep the variables that the gateway starts with?"""
    world = probes.resolved().world
    for name, value in world.readings.dotenv.values.items():
        if value.strip() or not world.started_with.get(name, "").strip():
            continue
        shown = masked_name(name)
        known = name in world.release.names
        yield Finding(
            code="ENV-BLANK",
            severity=Severity.ERROR if known else Severity.WARNING,
            title=text(".env erases {variable} with an empty line", variable=shown),
            subject=shown,
            detail=(
                "What needs it fails: even an empty line in .env overrides the value from the "
                "service, container or shell that starts the gateway."
            ),
            evidence=(
                Evidence(f".env:{value.source.line}", f"{shown}="),
                Evidence("environment of the gateway", text("{name} is set", name=shown)),
            ),
            fix="drop-blank",
            data={"name": name},
        )
