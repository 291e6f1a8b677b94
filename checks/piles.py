"""Check for log files that have grown too large and for request dumps that pile up."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, size, text

MEGABYTE = 1024**2
FLOOD = 200 * MEGABYTE
UNROTATED = 20 * MEGABYTE
_UNROTATED = (
    "gateway-exit-diag.log",
    "gateway-shutdown-diag.log",
    "gateway-shutdown-watchdog.log",
)
"""Hermes never rotates these."""
MANY, HEAVY = 1000, 500 * MEGABYTE


@check(id="piles", group="storage", codes=["LOG-FLOOD", "REQUEST-DUMPS"])
def piles(probes: Probes) -> Iterator[Finding]:
    """Do logs and dumps stay within bounds?"""
    for log in probes.logs():
        limit = UNROTATED if log.path.name in _UNROTATED else FLOOD
        if log.size > limit:
            name = probes.home.name_of(log.path)
            yield Finding(
                code="LOG-FLOOD",
                severity=Severity.WARNING,
                title=text("{name} has grown to {size}", name=name, size=size(log.size)),
                subject=name,
                detail="Something writes into it again and again; look at its end for what.",
                evidence=(Evidence(name, f"last written {log.modified:%Y-%m-%d %H:%M} UTC"),),
                fix="trim-logs",
                data={"path": log.path, "size": log.size},
            )
    dumps = probes.dumps()
    if dumps.number > MANY or dumps.size > HEAVY:
        more = "more than " if dumps.more else ""
        yield Finding(
            code="REQUEST-DUMPS",
            severity=Severity.WARNING,
            title=text(
                "{more}{number} dumped requests take {size}",
                more=more,
                number=dumps.number,
                size=size(dumps.size),
            ),
            subject="sessions",
            detail=(
                "Hermes writes one whenever a model provider fails, with the whole conversation "
                "in it, and never removes any. See what the provider answers in logs/errors.log."
            ),
            evidence=(Evidence("sessions/request_dump_*.json", f"{dumps.number} files"),),
            since=None,
            fix="trim-logs",
            data={"number": dumps.number, "size": dumps.size},
        )
