"""Check whether the last run of `hermes update` came to its end, by its log."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    clock,
    shorten,
    spoken,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import UpdateRun

_PATIENCE = timedelta(minutes=10)
"""Somebody who started an update answers its questions within this time."""
_SLACK = timedelta(minutes=1)
_RECENT = timedelta(days=7)
_LONG = 120
_LOG = "logs/update.log"


@check(id="update-log", group="gateway", codes=["UPD-CUTOFF"], needs="update log")
def update_log(probes: Probes) -> Iterator[Finding]:
    """Did the last `hermes update` come to its end?"""
    run = probes.update_run()
    assert run is not None
    now = datetime.now(UTC)
    if run.ended or not (run.changed or run.asks) or _is_settled(probes, run, now):
        return
    if run.pids and not (run.asks and now - run.at > _PATIENCE):
        raise Skip("an update is running")
    yield _waiting(run) if run.pids else _cut_off(run)


def _is_settled(probes: Probes, run: UpdateRun, now: datetime) -> bool:
    """Whether something newer says more about the update, or makes it history."""
    receipt, guarded = probes.update_receipt(), probes.guarded_update()
    if receipt and receipt.at >= run.at - _SLACK:
        return True
    if guarded and (guarded.open or guarded.began > run.at):
        return True
    change = probes.code_change()
    if change and change.at > run.at + _SLACK:
        return True
    return now - run.at > _RECENT and (not run.changed or _has_started_since(probes, run))


def _has_started_since(probes: Probes, run: UpdateRun) -> bool:
    starts = [gateway.started_at for gateway in probes.gateways()]
    lives = [life.began for life in probes.diary()]
    if any(start > run.at for start in (*starts, *lives, *probes.runtime().starts)):
        return True
    return probes.logged_start(run.at) is not None


def _waiting(run: UpdateRun) -> Finding:
    return Finding(
        code="UPD-CUTOFF",
        severity=Severity.WARNING,
        title="an update of Hermes waits for an answer",
        subject="Hermes",
        detail=_effect(run),
        evidence=(*_evidence(run), Evidence("process", text("{pid} waits", pid=run.pids[0]))),
        since=run.at,
        next=text(
            "Answer in the terminal of process {pid}. If that is gone, end the process and run "
            "`hermes update --yes`.",
            pid=run.pids[0],
        ),
        data={"pid": run.pids[0]},
    )


def _cut_off(run: UpdateRun) -> Finding:
    return Finding(
        code="UPD-CUTOFF",
        severity=Severity.WARNING if run.changed else Severity.INFO,
        title=(
            "an update of Hermes stopped at a question"
            if run.asks
            else "an update of Hermes did not come to its end"
        ),
        subject="Hermes",
        detail=_effect(run),
        evidence=_evidence(run),
        since=run.at,
        next=(
            "Run `hermes update --yes`, which asks nothing, then restart the gateway."
            if run.changed
            else "Run `hermes update --yes`, which asks nothing."
        ),
    )


def _effect(run: UpdateRun) -> str:
    return (
        "The update began to change the code. The steps after its last line have not run: packages "
        "may be old, and the gateway was not restarted."
        if run.changed
        else "The update has changed no code."
    )


def _evidence(run: UpdateRun) -> tuple[Evidence, ...]:
    last = shorten(spoken(run.last), _LONG)
    what = text("last line, {time}: {line}", time=clock(run.at), line=last)
    return Evidence(_LOG, text("update started {time}", time=run.began)), Evidence(_LOG, what)
