"""Check for messages that Hermes could not save in state.db and kept in other files."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Partly,
    Probes,
    Severity,
    Skip,
    check,
    clock,
    count,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import KeptFile, Runtime

_STATE = "gateway_state.json"
_SOON = timedelta(minutes=5)
"""A start adds pending messages within this time."""
_RECENT = timedelta(days=7)
_MOST = 5
"""How many logs are compared, the newest."""


@check(
    id="unsaved-turns",
    group="databases",
    codes=["SESSION-UNSAVED", "DB-DELETED-WAL"],
    limit=10,
)
def unsaved_turns(probes: Probes) -> Iterator[Finding | CouldNotLook | Partly]:
    """Are all messages in the message history?"""
    found, runtime = probes.unsaved(), probes.runtime()
    broken = runtime.store in ("unavailable", "retrying")
    if not broken and not any(found):
        raise Skip("Hermes has kept no unsaved message here")
    now = datetime.now(UTC)
    if broken and (running := _running(probes, runtime)) is not None:
        yield _unavailable(runtime, running)
    soon = now - _SOON if _pids(probes) else now
    waiting = [one for one in found.pending if not one.by_hand and one.at <= soon]
    pending = [one for one in waiting if not one.doubt]
    doubts = [CouldNotLook(one.doubt) for one in waiting if one.doubt and now - one.at < _RECENT]
    if pending:
        yield Finding(
            code="SESSION-UNSAVED",
            severity=Severity.WARNING,
            title=text("{files} of unsaved messages wait", files=count(len(pending), "file")),
            subject="pending_messages",
            detail=(
                "The bot does not remember these messages. Hermes adds them when it starts and "
                "state.db can be written."
            ),
            evidence=(_files("pending_messages", pending[0].at, len(pending)),),
            since=pending[0].at,
            next="Repair state.db if another finding names it, then restart the gateway.",
        )
    kept = [*found.diverted, *(one for one in found.pending if one.by_hand)]
    if kept:
        for said in _kept(probes, kept, now):
            if not isinstance(said, CouldNotLook):
                yield said
            elif str(said) not in map(str, doubts):
                doubts.append(said)
    yield from doubts
    if found.retired:
        yield from _retired(probes, found.retired, now)


def _kept(probes: Probes, kept: list[KeptFile], now: datetime) -> Iterator[Finding | CouldNotLook]:
    """Report transcripts with messages that state.db lacks, or that could not be compared."""
    recent = {one.path for one in kept if now - one.at < _RECENT}
    try:
        lacking = probes.unsaved_messages()
    except CouldNotLook as why:
        if recent:
            yield why
        return
    yield from (CouldNotLook(why) for path, why in lacking.unread if path in recent)
    if lacking.addable:
        yield _lacking(
            probes,
            [one for one in kept if one.path in lacking.sources],
            lacking.count,
            subject="sessions",
            detail=(
                "The bot does not remember these messages, and Hermes does not add them by "
                "itself. It could not write to state.db."
            ),
            fix="add-unsaved-turns",
        )
    left = [one for one in kept if one.path in lacking.left_in and one.path in recent]
    if left:
        reason, _ = lacking.left_in[left[-1].path]
        yield _lacking(
            probes,
            left,
            sum(lacking.left_in[one.path][1] for one in left),
            subject="state.db",
            detail=text("The bot does not remember them. They cannot be added: {why}.", why=reason),
            fix=None,
        )


def _lacking(
    probes: Probes,
    kept: list[KeptFile],
    number: int,
    *,
    subject: str,
    detail: str,
    fix: str | None,
) -> Finding:
    """Make the finding about messages that can be added, or about those that cannot."""
    return Finding(
        code="SESSION-UNSAVED",
        severity=Severity.WARNING,
        title=text("{messages} not in state.db", messages=count(number, "unsaved message")),
        subject=subject,
        detail=detail,
        evidence=tuple(
            Evidence(probes.home.name_of(one.path), text("kept {time}", time=clock(one.at)))
            for one in kept[:3]
        ),
        since=min(one.at for one in kept),
        next=(
            ""
            if fix
            else "Keep these files; read them, and tell the bot what it should know again."
        ),
        fix=fix,
    )


def _retired(
    probes: Probes, retired: tuple[KeptFile, ...], now: datetime
) -> Iterator[Finding | Partly]:
    """Report logs with messages that state.db lacks, and those that could not be compared."""
    unclear: list[tuple[KeptFile, str]] = []
    compared = retired if probes.deep else retired[-_MOST:]
    for one in compared:
        try:
            rows = probes.retired_rows(one.path)
        except CouldNotLook as reason:
            unclear.append((one, str(reason)))
            continue
        if not rows.saved.messages:
            unclear.append((one, ""))
        elif rows.missing.addable:
            yield Finding(
                code="DB-DELETED-WAL",
                severity=Severity.WARNING,
                title=text(
                    "{messages} only in a retired -wal file",
                    messages=count(rows.missing.addable, "message"),
                ),
                subject=one.path.name,
                detail=(
                    "The bot does not remember them. The write-ahead log (-wal) of state.db was "
                    "deleted or replaced while Hermes had it open."
                ),
                evidence=(Evidence(one.path.name, text("kept {time}", time=clock(one.at))),),
                since=one.at,
                fix="add-retired-rows",
                data={"folder": one.path.name},
            )
        elif rows.missing.left:
            unclear.append((one, "the conversations continued without its messages"))
    if unclear:
        yield _unclear(unclear, now)
    if older := len(retired) - len(compared):
        yield Partly(
            text(
                "{folders} state.db.retired-wal-* not compared; use --deep",
                folders=count(older, "older folder"),
            )
        )


def _unclear(retired: list[tuple[KeptFile, str]], now: datetime) -> Finding:
    last, _ = retired[-1]
    recent = now - last.at < _RECENT
    reasons = [
        Evidence(one.path.name, text("not added: {why}", why=why)) for one, why in retired if why
    ]
    return Finding(
        code="DB-DELETED-WAL",
        severity=Severity.WARNING if recent else Severity.INFO,
        title="Hermes set aside a write-ahead log of state.db",
        subject="state.db",
        detail=(
            "Its newest rows may be missing in state.db. The log was deleted or replaced while "
            "Hermes had it open."
        ),
        evidence=(
            *(
                Evidence(one.path.name, text("kept {time}", time=clock(one.at)))
                for one, _ in retired[-2:]
            ),
            *reasons[-1:],
        ),
        since=last.at,
        next=text(
            "Keep the folder. Compare with `hermes sessions recover --source {folder}/state.db "
            "--inspect-only`.",
            folder=last.path.name,
        ),
    )


def _running(probes: Probes, runtime: Runtime) -> int | None:
    """The process that wrote the state of the store, if it still runs."""
    owner = runtime.state_owner
    return owner.pid if owner and owner.pid in _pids(probes) else None


def _pids(probes: Probes) -> set[int]:
    try:
        return {gateway.pid for gateway in probes.gateways()}
    except CouldNotLook:
        return set()


def _unavailable(runtime: Runtime, pid: int) -> Finding:
    return Finding(
        code="SESSION-UNSAVED",
        severity=Severity.ERROR,
        title="the gateway runs without its message history",
        subject=_STATE,
        detail="The bot answers but remembers nothing and saves nothing.",
        evidence=(Evidence(_STATE, f"session_store: {runtime.store} (process {pid})"),),
        since=runtime.updated_at,
        next="Repair or unlock state.db, then restart the gateway.",
        data={"pid": pid},
    )


def _files(folder: str, first: datetime, number: int) -> Evidence:
    what = text("{files}, oldest {time}", files=count(number, "file"), time=clock(first))
    return Evidence(folder, what)
