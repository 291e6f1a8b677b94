"""Check for log files that have grown too large and for request dumps that pile up."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, clock, count, size, text

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
    """Are logs and request dumps of a normal size?"""
    for log in probes.logs():
        limit = UNROTATED if log.path.name in _UNROTATED else FLOOD
        if log.size > limit:
            name = probes.home.name_of(log.path)
            yield Finding(
                code="LOG-FLOOD",
                severity=Severity.WARNING,
                title=text("{name} grew to {size}", name=name, size=size(log.size)),
                subject=name,
                detail=(
                    "It fills the disk: Hermes never shortens this file."
                    if log.path.name in _UNROTATED
                    else "It fills the disk. Its last lines show what writes to it again and again."
                ),
                evidence=(Evidence(name, f"last written {clock(log.modified)}"),),
                fix="trim-logs",
                data={"path": log.path, "size": log.size},
            )
    dumps = probes.dumps()
    if dumps.number > MANY or dumps.size > HEAVY:
        yield Finding(
            code="REQUEST-DUMPS",
            severity=Severity.WARNING,
            title=(
                text(
                    "more than {dumps} take {size}",
                    dumps=count(dumps.number, "request dump"),
                    size=size(dumps.size),
                )
                if dumps.more
                else text(
                    "{dumps} take {size}",
                    dumps=count(dumps.number, "request dump"),
                    size=size(dumps.size),
                )
            ),
            subject="sessions",
            detail=(
                "Hermes writes one with the whole conversation each time a model provider fails, "
                "and never deletes any."
            ),
            evidence=(Evidence("sessions/request_dump_*.json", count(dumps.number, "file")),),
            since=None,
            fix="trim-logs",
            data={"number": dumps.number, "size": dumps.size},
            next="Look in logs/errors.log why the provider fails.",
        )
