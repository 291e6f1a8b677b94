"""Check that no log file contains a key or token of this home."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text


@check(id="leaked-secrets", group="secrets", codes=["CRED-IN-LOGS"])
def leaked_secrets(probes: Probes) -> Iterator[Finding]:
    """Are the logs free of this home's own keys and tokens?"""
    if not (probes.home / "logs").is_dir():
        raise Skip("there is no log yet")
    found: dict[str, list[Evidence]] = {}
    for one in probes.in_logs():
        place = f"{one.log}:{one.line}" if one.line else one.log
        found.setdefault(one.name, []).append(Evidence(place, f"holds the value of {one.name}"))
    redacts = probes.settings().value("HERMES_REDACT_SECRETS").lower() not in ("false", "0", "no")
    for name, evidence in found.items():
        yield Finding(
            code="CRED-IN-LOGS",
            severity=Severity.WARNING,
            title=text("{name} stands in the logs as it is", name=name),
            subject=name,
            detail=(
                "Whoever is shown the logs has it: renew it, and delete those logs before you pass "
                "any on."
                + ("" if redacts else " HERMES_REDACT_SECRETS is off: take that line out of .env.")
            ),
            evidence=tuple(evidence),
        )
