"""Check that every port in .env is a number from 1 to 65535."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, odd_ports, text


@check(id="env-ports", group="configuration", codes=["ENV-PORT"], by_release=True)
def env_ports(probes: Probes) -> Iterator[Finding]:
    """Is every port in .env a number?"""
    found = probes.resolved()
    if not found.platforms:
        raise Skip("no platform would start")
    for one in odd_ports(found):
        yield Finding(
            code="ENV-PORT",
            severity=Severity.CRITICAL if one.fatal else Severity.WARNING,
            title=(
                text("{name} is no number: the gateway cannot start", name=one.name)
                if one.fatal
                else text(
                    "{name} is no number; {platform} does not listen where you think",
                    name=one.name,
                    platform=one.platform,
                )
            ),
            subject=one.name,
            detail=text(
                "Write a number between 1 and 65535 for {name}, or take the line out.",
                name=one.name,
            ),
            evidence=(Evidence(one.source.place, f"{one.name} is no number from 1 to 65535"),),
        )
