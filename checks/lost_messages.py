"""Check for messages and answers that Hermes could not save or deliver."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Partly,
    Probes,
    Severity,
    Skip,
    check,
    text,
)
from hermes_doctor.api.gateway import Runtime
from hermes_doctor.api.stores import KeptFile
from hermes_doctor.api.tools import clock, count, known_or, pattern

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
    found, runtime = probes.stores.unsaved_turns(), probes.gateway.runtime()
    broken = runtime.store in ("unavailable", "retrying")
    if not broken and not any(found):
        raise Skip("Hermes has kept no unsaved message here")
    now = datetime.now(UTC)
    if broken and (running := _running(probes, runtime)) is not None:
        yield _unavailable(runtime, running)
    soon = now - _SOON if _pids(probes) else now
    waiting = [file for file in found.pending if not file.by_hand and file.at <= soon]
    pending = [kept_file for kept_file in waiting if not kept_file.doubt]
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
    recent = {file.path for file in kept if now - file.at < _RECENT}
    try:
        lacking = probes.stores.unsaved_messages()
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
    left = [
        kept_file
        for kept_file in kept
        if kept_file.path in lacking.left_in and kept_file.path in recent
    ]
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
            Evidence(probes.home.name_of(file.path), text("kept {time}", time=clock(file.at)))
            for file in kept[:3]
        ),
        since=min(kept_file.at for kept_file in kept),
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
    for file in compared:
        try:
            rows = probes.stores.retired_rows(file.path)
        except CouldNotLook as reason:
            unclear.append((file, str(reason)))
            continue
        if not rows.saved.messages:
            unclear.append((file, ""))
        elif rows.missing.addable:
            yield Finding(
                code="DB-DELETED-WAL",
                severity=Severity.WARNING,
                title=text(
                    "{messages} only in a retired -wal file",
                    messages=count(rows.missing.addable, "message"),
                ),
                subject=file.path.name,
                detail=(
                    "The bot does not remember them. The write-ahead log (-wal) of state.db was "
                    "deleted or replaced while Hermes had it open."
                ),
                evidence=(Evidence(file.path.name, text("kept {time}", time=clock(file.at))),),
                since=file.at,
                fix="add-retired-rows",
                data={"folder": file.path.name},
            )
        elif rows.missing.left:
            unclear.append((file, "the conversations continued without its messages"))
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
    return known_or(set(), lambda: {gateway.pid for gateway in probes.gateway.running()})


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


_TABLE = "delivery_obligations"
_DAY = 86_400
_SQL = (
    "SELECT platform, state, count(*), min(created_at), max(updated_at), max(last_error) "
    f"FROM {_TABLE} WHERE state IN ('failed', 'abandoned') AND updated_at > {{since}} "
    "GROUP BY platform, state LIMIT 50"
)
_FLOOD = pattern(r"flood|retry.?after|too many requests|\b429\b")


@check(id="undelivered-answers", group="platforms", codes=["REPLY-LOST", "TG-FLOOD"])
def undelivered_answers(probes: Probes) -> Iterator[Finding]:
    """Were all finished answers delivered?"""
    path = probes.home / "state.db"
    if path not in probes.databases.files().paths:
        raise Skip("no message history yet")
    try:
        condition = probes.databases.condition(path)
    except FileNotFoundError:
        raise Skip("state.db was removed during the check") from None
    if probes.databases.is_reported(path):
        raise Skip("state.db cannot be read; another check reports it")
    if condition.readable and condition.catalog and _TABLE not in condition.catalog.tables:
        raise Skip("this release records no deliveries")
    rows = probes.databases.rows(path, _SQL.format(since=int(time.time()) - _DAY), _TABLE)
    for platform, state, number, first, _, error in rows:
        if isinstance(platform, str) and isinstance(number, int):
            yield _finding(platform[:40], str(state), number, first, str(error or ""))


def _finding(platform: str, state: str, number: int, first: object, error: str) -> Finding:
    flood = platform == "telegram" and bool(_FLOOD.search(error.lower()))
    answers = count(number, "finished answer")
    return Finding(
        code="TG-FLOOD" if flood else "REPLY-LOST",
        severity=Severity.WARNING,
        title=text("{answers} on {platform} reached nobody", answers=answers, platform=platform),
        subject=platform,
        detail=(
            "Telegram asked the bot to wait, and Hermes sends these answers again only after a "
            "restart."
            if flood and state == "failed"
            else "The platform refused them. Hermes tries again after a restart, at most three "
            "times within a day."
            if state == "failed"
            else "Hermes gave up sending them. The message history (state.db) has the answers."
        ),
        evidence=(Evidence("state.db", f"{_TABLE}: {number} {state}"),),
        since=_moment(first),
        next=(
            "Restart the gateway to send them again."
            if state == "failed"
            else "Ask the bot to repeat the answer."
        ),
        data={"platform": platform, "state": state, "number": number},
    )


def _moment(value: object) -> datetime | None:
    try:
        return datetime.fromtimestamp(float(str(value)[:40]), UTC)
    except (ValueError, OverflowError, OSError):
        return None
