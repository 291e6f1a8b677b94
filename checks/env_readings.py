"""Check that the two parsers of Hermes read the same API keys from .env."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, differing, text

_CAUSES = {
    "comment": (
        "the comment after {variable} becomes part of the key",
        "Hermes sends the comment to the provider, which then rejects the key (401).",
        "comment after the value",
    ),
    "reference": (
        "a variable inside {variable} is not filled in",
        "Hermes sends the name of the variable to the provider, which then rejects the key (401).",
        "${NAME} in the value",
    ),
    "quotes": (
        "quotes or escapes become part of {variable}",
        "Hermes sends them to the provider, which then rejects the key (401).",
        "quotes or escapes in the value",
    ),
}
"""Title, detail and evidence for each cause."""


@check(
    id="env-readings", group="configuration", codes=["ENV-AMBIGUOUS"], by_release=True, needs="env"
)
def env_readings(probes: Probes) -> Iterator[Finding]:
    """Does Hermes read the same keys from .env everywhere?"""
    found = probes.resolved()
    routes = [found.main, found.used, *found.fallback]
    keys = [route.key for route in routes if route and route.key]
    used = {(key.source.via or key.source).name: key for key in keys}
    for one in differing(found.world):
        if one.name in used and used[one.name].faults:
            continue  # faults of keys in use have their own code
        title, detail, what = _CAUSES[one.cause]
        yield Finding(
            code="ENV-AMBIGUOUS",
            severity=Severity.ERROR if one.name in used else Severity.INFO,
            title=text(title, variable=one.name),
            subject=one.name,
            detail=detail if one.name in used else "Nothing uses this key now.",
            evidence=(Evidence(f".env:{one.line}", f"{one.name}: {what}"),),
            fix="write-plainly",
        )
