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
    from hermes_doctor.api import Runtime

_STATE = "gateway_state.json"
_SOON = timedelta(minutes=5)
"""A start adds pending messages within this time."""
_RECENT = timedelta(days=7)


@check(id="unsaved-turns", group="databases", codes=["SESSION-UNSAVED", "DB-DELETED-WAL"])
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
    kept = [one for one in kept if now - one.at < _RECENT]
    if kept:
        first = min(one.at for one in kept)
        yield Finding(
            code="SESSION-UNSAVED",
            severity=Severity.WARNING,
            title=text("{files} of messages are not in state.db", files=count(len(kept), "file")),
            subject="sessions",
            detail=(
                "The bot does not remember these messages, and Hermes does not add them by itself. "
                "It could not write to state.db."
            ),
            evidence=tuple(
                Evidence(probes.home.name_of(one.path), text("kept {time}", time=clock(one.at)))
                for one in kept[:3]
            ),
            since=first,
            next="Keep these files; read them, and tell the bot what it should know again.",
        )
    if retired := found.retired:
        recent = now - retired[-1].at < _RECENT
        yield Finding(
            code="DB-DELETED-WAL",
            severity=Severity.WARNING if recent else Severity.INFO,
            title="Hermes set aside a write-ahead log of state.db",
            subject="state.db",
            detail=(
                "Its newest rows may be missing in state.db. The log was deleted or replaced while "
                "Hermes had it open."
            ),
            evidence=tuple(
                Evidence(one.path.name, text("kept {time}", time=clock(one.at)))
                for one in retired[-2:]
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
