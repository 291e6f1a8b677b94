"""Check for messages that Hermes could not save in state.db and kept in other files."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
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
def unsaved_turns(probes: Probes) -> Iterator[Finding]:
    """Are all messages in the message history?"""
    found, runtime = probes.unsaved(), probes.runtime()
    broken = runtime.store in ("unavailable", "retrying")
    if not broken and not any(found):
        raise Skip("Hermes has kept no unsaved message here")
    now = datetime.now(UTC)
    if broken and (running := _running(probes, runtime)) is not None:
        yield _unavailable(runtime, running)
    soon = now - _SOON if _pids(probes) else now
    pending = [one for one in found.pending if not one.by_hand and one.at <= soon]
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
        yield from _kept(probes, kept, now)
    if found.retired:
        yield from _retired(probes, found.retired, now)


def _kept(probes: Probes, kept: list[KeptFile], now: datetime) -> Iterator[Finding]:
    """Report transcripts with messages that state.db lacks, or that could not be compared."""
    title = text("{files} of messages are not in state.db", files=count(len(kept), "file"))
    detail = (
        "The bot does not remember these messages, and Hermes does not add them by itself. "
        "It could not write to state.db."
    )
    repair = None
    try:
        lacking = probes.unsaved_messages()
    except CouldNotLook:
        kept = [one for one in kept if now - one.at < _RECENT]
    else:
        if not lacking.any:
            return
        repair = "add-unsaved-turns" if lacking.addable else None
        number = lacking.count or sum(lacking.left.values())
        title = text("{messages} not in state.db", messages=count(number, "unsaved message"))
        if repair is None:
            detail = text(
                "The bot does not remember them. They cannot be added: {why}.",
                why=next(iter(lacking.left)),
            )
            kept = [one for one in kept if now - one.at < _RECENT]
    if not kept:
        return
    yield Finding(
        code="SESSION-UNSAVED",
        severity=Severity.WARNING,
        title=title,
        subject="sessions",
        detail=detail,
        evidence=tuple(
            Evidence(probes.home.name_of(one.path), text("kept {time}", time=clock(one.at)))
            for one in kept[:3]
        ),
        since=min(one.at for one in kept),
        next=(
            ""
            if repair
            else "Keep these files; read them, and tell the bot what it should know again."
        ),
        fix=repair,
    )


def _retired(probes: Probes, retired: tuple[KeptFile, ...], now: datetime) -> Iterator[Finding]:
    """Report logs with messages that state.db lacks, and those that could not be compared."""
    unclear: list[KeptFile] = []
    why = ""
    for one in retired[-_MOST:]:
        try:
            rows = probes.retired_rows(one.path)
        except CouldNotLook as reason:
            unclear.append(one)
            why = str(reason)
            continue
        if not rows.saved.messages:
            unclear.append(one)
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
            unclear.append(one)
            why = "the conversations continued without its messages"
    if unclear:
        yield _unclear(unclear, why, now)


def _unclear(retired: list[KeptFile], why: str, now: datetime) -> Finding:
    recent = now - retired[-1].at < _RECENT
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
                for one in retired[-2:]
            ),
            *([Evidence(retired[-1].path.name, text("not added: {why}", why=why))] if why else []),
        ),
        since=retired[-1].at,
        next=text(
            "Keep the folder. Compare with `hermes sessions recover --source {folder}/state.db "
            "--inspect-only`.",
            folder=retired[-1].path.name,
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
