"""Check that no log file contains a key or token of this home."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text


@check(id="leaked-secrets", group="secrets", codes=["CRED-IN-LOGS"])
def leaked_secrets(probes: Probes) -> Iterator[Finding]:
    """Are the logs free of keys and tokens?"""
    if not (probes.home / "logs").is_dir():
        raise Skip("no log yet")
    found: dict[str, list[Evidence]] = {}
    for one in probes.in_logs():
        place = f"{one.log}:{one.line}" if one.line else one.log
        found.setdefault(one.name, []).append(Evidence(place, f"contains the value of {one.name}"))
    redacts = probes.settings().value("HERMES_REDACT_SECRETS").lower() not in ("false", "0", "no")
    for name, evidence in found.items():
        yield Finding(
            code="CRED-IN-LOGS",
            severity=Severity.WARNING,
            title=text("the logs contain {name} in plain text", name=name),
            subject=name,
            detail=(
                "Everyone who sees the logs can use it."
                if redacts
                else "Everyone who sees the logs can use it. HERMES_REDACT_SECRETS is off, so "
                "Hermes does not mask secrets."
            ),
            evidence=tuple(evidence),
            next="Renew it, and delete these logs before you show them to anyone.",
        )
