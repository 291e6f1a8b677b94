"""Check that every port in .env is a number from 1 to 65535."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, odd_ports, text


@check(id="env-ports", group="configuration", codes=["ENV-PORT"], by_release=True)
def env_ports(probes: Probes) -> Iterator[Finding]:
    """Is every port in .env a valid number?"""
    found = probes.resolved()
    if not found.platforms:
        raise Skip("no platform is set up")
    for one in odd_ports(found):
        yield Finding(
            code="ENV-PORT",
            severity=Severity.CRITICAL if one.fatal else Severity.WARNING,
            title=(
                text("gateway cannot start: {variable} is not a port", variable=one.name)
                if one.fatal
                else text("{variable} is not a valid port", variable=one.name)
            ),
            subject=one.name,
            detail=(
                "Nobody gets an answer, because this release stops at the invalid number."
                if one.fatal
                else text(
                    "Requests may not reach {platform}, because Hermes cannot use this value.",
                    platform=one.platform,
                )
            ),
            next=text(
                "Set {variable} to a number from 1 to 65535, or delete the line. Then restart the "
                "gateway.",
                variable=one.name,
            ),
            evidence=(Evidence(one.source.place, "not a number from 1 to 65535"),),
        )
