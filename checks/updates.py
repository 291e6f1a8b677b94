"""Check how the last updates of Hermes ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.gateway import UpdateReceipt, UpdateRun, is_same_commit, start_moment
from hermes_doctor.api.stores import redact_log_text
from hermes_doctor.api.tools import clock, listed, shorten

_PATIENCE = timedelta(minutes=10)
"""Somebody who started an update answers its questions within this time."""
_SLACK = timedelta(minutes=1)
_RECENT = timedelta(days=7)
_LONG = 120
_LOG = "logs/update.log"


@check(id="update-log", group="gateway", codes=["UPD-CUTOFF"], needs="update log")
def update_log(probes: Probes) -> Iterator[Finding]:
    """Did the last `hermes update` come to its end?"""
    run = probes.hermes.update_run()
    assert run is not None
    now = datetime.now(UTC)
    if run.ended or not (run.changed or run.asks) or _is_settled(probes, run, now):
        return
    if run.pids and not (run.asks and now - run.at > _PATIENCE):
        raise Skip("an update is running")
    yield _waiting(run) if run.pids else _cut_off(run)


def _is_settled(probes: Probes, run: UpdateRun, now: datetime) -> bool:
    """Whether something newer says more about the update, or makes it history."""
    receipt, guarded = probes.hermes.update_receipt(), probes.records.guarded_update()
    if receipt and receipt.at >= run.at - _SLACK:
        return True
    if guarded and (guarded.open or guarded.began > run.at):
        return True
    change = probes.hermes.code_change()
    if change and change.at > run.at + _SLACK:
        return True
    return now - run.at > _RECENT and (not run.changed or _has_started_since(probes, run))


def _has_started_since(probes: Probes, run: UpdateRun) -> bool:
    starts = [gateway.started_at for gateway in probes.gateway.running()]
    lives = [life.began for life in probes.gateway.diary()]
    if any(start > run.at for start in (*starts, *lives, *probes.gateway.runtime().starts)):
        return True
    return probes.logs.last_start(run.at) is not None


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
    last = shorten(redact_log_text(run.last), _LONG)
    what = text("last line, {time}: {line}", time=clock(run.at), line=last)
    return Evidence(_LOG, text("update started {time}", time=run.began)), Evidence(_LOG, what)


_RECEIPT = "logs/update_receipts/latest.json"
_MARKER = "fleet_restart_pending"
_LONG_ERROR = 160
_AFTER = timedelta(minutes=10)
"""A gateway that starts this long after an update was started because of it."""
_SHORT = timedelta(minutes=5)
"""A gateway that lived no longer than this died from what the update changed."""


@check(
    id="update-receipts",
    group="gateway",
    codes=["GW-UPDATE-NOT-RESTARTED", "UPD-FAILED", "UPD-RECEIPT"],
    needs="update receipt",
)
def update_receipts(probes: Probes) -> Iterator[Finding]:
    """Did the last `hermes update` finish and start the gateway again?"""
    receipt, marker = probes.hermes.update_receipt(), probes.hermes.pending_restart()
    if marker is not None and (receipt is None or marker.at > receipt.at):
        if marker.pid and _still_runs(probes, marker.pid, marker.at):
            raise Skip("an update is running")
        seen = (Evidence(_MARKER, text("written {time}", time=clock(marker.at))),)
        if _is_current(probes, probes.hermes.code_commit(), marker.at) or _started_by_log(
            probes, marker.at
        ):
            yield _leftover(_MARKER, seen, marker.at)
        elif not probes.gateway.running():  # another check compares a running gateway with its code
            yield _not_started(marker.at, seen)
    elif receipt is not None:
        yield from _finished(probes, receipt)


def _finished(probes: Probes, receipt: UpdateReceipt) -> Iterator[Finding]:
    """Judge a run of `hermes update` that wrote its receipt."""
    head = probes.hermes.code_commit()
    seen = _seen(receipt)
    if head and receipt.after and not is_same_commit(head, receipt.after):
        if receipt.unfinished:  # a later update changed the code and wrote no receipt
            yield _leftover(_RECEIPT, seen, receipt.at)
        return
    lost = _lost_gateway(probes, receipt)
    if lost:
        yield _not_back(receipt, lost, seen)
    elif not receipt.unfinished:
        return
    elif not receipt.pulled:
        if datetime.now(UTC) - receipt.at < _RECENT:
            yield _failed(receipt, seen)
    elif _is_current(probes, head or receipt.after, receipt.began) or _started_by_log(
        probes, receipt.at
    ):
        yield _leftover(_RECEIPT, seen, receipt.at)
    elif not probes.gateway.running():  # another check compares a running gateway with its code
        yield _not_started(receipt.at, seen)


def _is_current(probes: Probes, expected: str | None, since: datetime) -> bool:
    """Whether the last gateway runs the code of the update, or was started after it."""
    loaded = probes.gateway.runtime().commit
    if loaded and expected:
        return is_same_commit(loaded, expected)
    running = [gateway.started_at for gateway in probes.gateway.running()]
    lives = [life.began for life in probes.gateway.diary()]
    return any(start > since for start in (*running, *lives, *probes.gateway.runtime().starts))


def _started_by_log(probes: Probes, since: datetime) -> bool:
    """Whether a gateway started after the update and has stopped again, as its log says."""
    return not probes.gateway.running() and probes.logs.last_start(since) is not None


def _still_runs(probes: Probes, pid: int, at: datetime) -> bool:
    """Whether the process that wrote the marker at this time exists, not a later one."""
    process = probes.machine.process(pid)
    return process is not None and start_moment(process.start_time) <= at + timedelta(seconds=2)


def _lost_gateway(probes: Probes, receipt: UpdateReceipt) -> str:
    """Return how the gateway was lost that this update stopped; empty if it was not."""
    runtime = probes.gateway.runtime()
    if probes.gateway.running() or runtime.unseen or probes.gateway.served_by():
        return ""
    last = max(probes.gateway.diary(), key=lambda life: life.began, default=None)
    starts = (*([last.began] if last else ()), *runtime.starts)
    pids = {one.pid for one in (last, runtime.state_owner) if one}
    started = any(start > receipt.at for start in starts) or probes.logs.last_start(receipt.at)
    if pids & receipt.killed and not started:
        return "the update stopped it, and nothing started it again"
    if not last or not receipt.restarted or abs(last.began - receipt.at) > _AFTER:
        return ""
    beat = runtime.beat.at if runtime.beat and runtime.beat.pid == last.pid else last.began
    short = (last.ended or beat) - last.began < _SHORT
    died = short and last.how in ("failed", "gone")
    return "it started after the update and died at once" if died else ""


def _not_back(receipt: UpdateReceipt, how: str, seen: tuple[Evidence, ...]) -> Finding:
    return Finding(
        code="GW-UPDATE-NOT-RESTARTED",
        severity=Severity.ERROR,
        title="the gateway did not come back after the update",
        subject="gateway",
        detail="Nobody gets an answer. The update stopped the gateway to load the new code.",
        evidence=(*seen, Evidence("gateway", how)),
        since=receipt.at,
        next="Start the gateway; if it stops again, read the end of logs/errors.log.",
    )


def _not_started(at: datetime, seen: tuple[Evidence, ...]) -> Finding:
    return Finding(
        code="GW-UPDATE-NOT-RESTARTED",
        severity=Severity.ERROR,
        title="Hermes was updated, and no gateway has started since",
        subject="gateway",
        detail="Nobody gets an answer. The update ended before it started the gateway again.",
        evidence=seen,
        since=at,
        next="Start the gateway.",
    )


def _failed(receipt: UpdateReceipt, seen: tuple[Evidence, ...]) -> Finding:
    return Finding(
        code="UPD-FAILED",
        severity=Severity.WARNING,
        title=(
            "the last Hermes update was interrupted"
            if receipt.interrupted
            else "the last Hermes update failed"
        ),
        subject="Hermes",
        detail=(
            "Hermes stays on its previous release. The update changed no code."
            if receipt.after
            else "Hermes probably stays on its previous release."
        ),
        evidence=seen,
        since=receipt.at,
        next="Read the end of logs/update.log, then run `hermes update` again.",
    )


def _leftover(name: str, seen: tuple[Evidence, ...], at: datetime) -> Finding:
    return Finding(
        code="UPD-RECEIPT",
        severity=Severity.INFO,
        title="Hermes still warns of an update that ended long ago",
        subject=name,
        detail=(
            "No gateway runs old code. Hermes reads an old record and may restart gateways at each "
            "update."
        ),
        evidence=seen,
        since=at,
        next="Run `hermes update` until it reports success; that writes a new record.",
    )


def _seen(receipt: UpdateReceipt) -> tuple[Evidence, ...]:
    """Return what the receipt says: its outcome, and the errors that ended it."""
    errors = {"stop_reason": receipt.stop_reason, "phase_error": receipt.restart_error}
    return (
        Evidence(_RECEIPT, _summary(receipt)),
        *(
            Evidence(_RECEIPT, f"{name}: {shorten(redact_log_text(error), _LONG_ERROR)}")
            for name, error in errors.items()
            if error and not error.startswith("completed")
        ),
    )


def _summary(receipt: UpdateReceipt) -> str:
    if receipt.failed_units:
        return text(
            "{outcome} at {time}, not restarted: {units}",
            outcome=receipt.outcome,
            time=clock(receipt.at),
            units=listed(receipt.failed_units),
        )
    if receipt.failed_step:
        return text(
            "{outcome} at {time}, step {step}",
            outcome=receipt.outcome,
            time=clock(receipt.at),
            step=receipt.failed_step,
        )
    return text("{outcome} at {time}", outcome=receipt.outcome, time=clock(receipt.at))
