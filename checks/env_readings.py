"""Check that the two parsers of Hermes read the same API keys from .env."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, differing, text

_CAUSES = {
    "comment": (
        "the comment behind it is sent as part of the key",
        "Put the comment on a line of its own.",
    ),
    "reference": (
        "${NAME} in it is sent as it stands",
        "Write the value itself: the parser that provider keys go through replaces nothing.",
    ),
    "quotes": (
        "its quotes are read differently",
        "Write the value without quotes, or with one pair of the same.",
    ),
}


@check(id="env-readings", group="configuration", codes=["ENV-AMBIGUOUS"], by_release=True)
def env_readings(probes: Probes) -> Iterator[Finding]:
    """Do both parsers of Hermes read the same keys from .env?"""
    if probes.env() is None:
        raise Skip("there is no .env")
    found = probes.resolved()
    routes = [found.main, found.used, *found.fallback]
    keys = [route.key for route in routes if route and route.key]
    used = {(key.source.via or key.source).name: key for key in keys}
    for one in differing(found.world):
        if one.name in used and used[one.name].faults:
            continue  # faults of keys in use have their own code
        what, detail = _CAUSES[one.cause]
        yield Finding(
            code="ENV-AMBIGUOUS",
            severity=Severity.ERROR if one.name in used else Severity.WARNING,
            title=text("{name} in .env is read in two ways: {what}", name=one.name, what=what),
            subject=one.name,
            detail=detail + " A provider answers such a key with 401.",
            evidence=(Evidence(f".env:{one.line}", f"{one.name}: {what}"),),
            fix="write-plainly",
        )
