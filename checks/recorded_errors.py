"""Name the causes of errors that Hermes recorded in files and not in its log."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check
from hermes_doctor.api.stores import redact_log_text
from hermes_doctor.api.tools import NamedTuple, shorten

if TYPE_CHECKING:
    from hermes_doctor.api.stores import RecordedCause

_CODES = [
    "CFG-BASE-URL",
    "CFG-CONTEXT-LENGTH",
    "CFG-IGNORED",
    "CFG-MODEL",
    "CFG-PROVIDER-UNKNOWN",
    "CFG-TYPE",
    "CFG-UNRESOLVED",
    "CFG-YAML",
    "CLOCK-STEP",
    "CRED-SHAPE",
    "CRON-JOBS-CORRUPT",
    "DB-DISKIO",
    "DB-FTS-CORRUPT",
    "DB-FTS-STALE",
    "DB-LOCKED",
    "DB-MALFORMED",
    "DB-NETFS",
    "DB-NOTADB",
    "DB-OWNER",
    "DB-SCHEMA",
    "DISK-FULL",
    "GW-CODE-SKEW",
    "GW-FD-EXHAUST",
    "GW-FD-LIMIT-LOW",
    "GW-LOCK-LOST",
    "GW-LOOP-BLOCKED",
    "GW-MEMORY",
    "GW-NO-USER-BUS",
    "GW-OOM",
    "GW-PORT-IN-USE",
    "GW-STARTLIMIT",
    "KANBAN-CORRUPT",
    "KANBAN-SCHEMA",
    "NET-CLOSE-WAIT",
    "NET-DNS",
    "NET-PROXY",
    "NET-TCP",
    "NET-TLS",
    "PERM-OWNER",
    "PLATFORM-DEPS",
    "PROVIDER-401",
    "PROVIDER-402-429",
    "PROVIDER-403",
    "PROVIDER-KEY",
    "PROVIDER-REJECTED",
    "PROXY-SOCKS",
    "RUN-CUTOFF",
    "SSL-CA",
    "STORE-CORRUPT",
    "TG-CONNECT-HANG",
    "TG-NETWORK",
    "TG-POOL-EXHAUST",
    "TOKEN-DUP",
    "UPD-VENV-BROKEN",
    "WEBHOOK-REJECTED",
]
"""All codes that the table of causes has for these parts; a test compares them."""
_LONG = 200
"""Characters of an error that are shown."""
_MOST = 6
_CARDS = (
    "SELECT id, last_failure_error FROM tasks WHERE consecutive_failures > 0 "
    "AND last_failure_error IS NOT NULL AND status NOT IN ('done', 'archived') LIMIT 200"
)
_DOWN = ("fatal", "disconnected", "retrying")


class _Recorded(NamedTuple):
    """An error that a file has, and whose it is."""

    error: str
    part: str
    name: str
    label: str
    where: str
    since: datetime | None = None


@check(id="recorded-errors", group="gateway", codes=_CODES)
def recorded_errors(probes: Probes) -> Iterator[Finding]:
    """Do files of Hermes name a cause that its parts fail for?"""
    found: dict[tuple[str, str, str], tuple[_Recorded, RecordedCause, list[Evidence]]] = {}
    errors = [error for error in _errors(probes) if error.error.strip()]
    if not errors:
        raise Skip("no file has an error of the last run")
    for recorded in errors:
        cause = _cause(recorded)
        if cause is None:
            continue
        words = shorten(redact_log_text(" ".join(recorded.error.split())[:2000]), _LONG)
        evidence = Evidence(recorded.where, words)
        key = recorded.part, recorded.name, cause.code
        found.setdefault(key, (recorded, cause, []))[2].append(evidence)
    for recorded, cause, proof in found.values():
        platform = recorded.part == "platform"
        yield Finding(
            code=cause.code,
            severity=Severity.ERROR if platform else Severity.WARNING,
            title=cause.title,
            subject=recorded.name,
            detail=cause.detail,
            evidence=tuple(proof[:_MOST]),
            since=recorded.since,
            data={"platform": recorded.name} if platform else {},
            next=cause.advice,
        )


def _cause(recorded: _Recorded) -> RecordedCause | None:
    from hermes_doctor.api.stores import recorded_cause

    return recorded_cause(recorded.error, recorded.part, recorded.name, recorded.label)


def _errors(probes: Probes) -> Iterator[_Recorded]:
    """All errors of what failed last and has not succeeded since."""
    jobs = "scheduled jobs"
    for job in probes.stores.jobs():
        where = f"job {job.name}"
        missed = job.not_started
        yield _Recorded(job.failed or job.skipped, "cron", jobs, jobs, where, job.last_run)
        if missed:
            yield _Recorded(missed.why, "cron", jobs, jobs, where, missed.at)
    yield from _cards(probes)
    yield from _platforms(probes)
    receipt = probes.hermes.update_receipt()
    if receipt and receipt.unfinished and not receipt.interrupted:
        for error in (receipt.stop_reason, receipt.restart_error):
            yield _Recorded(error, "update", "update", "update", "update receipt", receipt.at)


def _cards(probes: Probes) -> Iterator[_Recorded]:
    """The last error of kanban cards that fail."""
    for path in probes.databases.files().paths:
        if path.name != "kanban.db":
            continue
        name = probes.home.name_of(path)
        try:
            rows = (
                []
                if probes.databases.is_reported(path)
                else probes.databases.rows(path, _CARDS, "tasks")
            )
        except (CouldNotLook, FileNotFoundError):
            continue  # another check says that the board cannot be read
        for id, error in rows:
            yield _Recorded(str(error), "kanban", name, "kanban board", f"{name}: task {id}")


def _platforms(probes: Probes) -> Iterator[_Recorded]:
    """The errors that adapters gave the gateway which runs now."""
    for gateway in probes.gateway.running():
        claims = probes.gateway.claims(gateway) or {}
        for platform in probes.settings.platforms():
            claim = claims.get(platform.name)
            if claim is not None and claim.state in _DOWN:
                where = f"gateway_state.json: {platform.name}"
                error = claim.error_message or ""
                yield _Recorded(
                    *(error, "platform", platform.name, platform.label, where), claim.updated_at
                )
