"""Check that the running gateway still looks for scheduled jobs that are due."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from hermes_doctor.api import (
    Evidence,
    Finding,
    Gateway,
    Probes,
    Severity,
    Skip,
    ago,
    check,
    snapshot,
    text,
)

_SILENT = timedelta(seconds=300)
"""The ticker looks once a minute; Hermes itself considers it late after 200 seconds."""
_SIGNS = (0, 18)
"""The first release whose ticker stores the times at which it looked, first at its start."""
_BUILT_IN = ("", "builtin", "in-process", "inprocess")
_BEAT = "cron/ticker_heartbeat"


@check(id="cron-ticker", group="cron", codes=["CRON-TICKER-DEAD"], needs="gateway")
def cron_ticker(probes: Probes) -> Iterator[Finding]:
    """Does the gateway look for scheduled jobs that are due?"""
    gateways = probes.gateways()
    block = probes.settings().config.get("cron")
    provider = block.get("provider") if isinstance(block, dict) else None
    if str(provider or "").strip() not in _BUILT_IN:
        raise Skip("another provider starts the scheduled jobs")
    ticker, began = probes.ticker(), gateways[0].started_at
    # A sign from before a jump of the clock is younger than it looks.
    now = datetime.now(UTC) - gateways[0].clock_step
    if _never_began(probes, gateways[0], now):
        yield _never(probes, began)
        return
    if ticker.last_tick is None or now - began < _SILENT:
        raise Skip("the gateway has just started, or this release does not record it")
    dead = now - ticker.last_tick > _SILENT
    last = ticker.last_tick if dead else ticker.last_success
    if not dead and (last is None or now - last < _SILENT):
        return
    assert last is not None
    name = _BEAT if dead else "cron/ticker_last_success"
    yield Finding(
        code="CRON-TICKER-DEAD",
        severity=_severity(probes),
        title=(
            "scheduled jobs do not run: the job scheduler has stopped"
            if dead
            else "scheduled jobs do not run: the job scheduler fails"
        ),
        subject="cron",
        detail=(
            "The rest of the gateway still runs. A restart of the gateway starts the scheduler."
            if dead
            else "Each search for due jobs fails. A restart helps only after the cause is removed."
        ),
        next="" if dead else "Look into errors.log for `Cron tick error`.",
        evidence=(Evidence(name, text("last written {time}", time=ago(last))),),
        since=max(last, began),
        fix="restart-gateway" if dead else None,
        data={"pid": gateways[0].pid},
    )


def _severity(probes: Probes) -> Severity:
    return Severity.ERROR if probes.jobs() else Severity.WARNING


def _never_began(probes: Probes, gateway: Gateway, now: datetime) -> bool:
    """Whether a gateway that has run for some time never wrote the ticker's first heartbeat.

    A gateway that was updated but not restarted may be of a release without heartbeats.
    """
    installed = probes.installation()
    if (
        now - gateway.started_at < 2 * _SILENT
        or installed is None
        or not installed.running
        or installed.release < _SIGNS
        or snapshot(probes.home / _BEAT).kind != "absent"
        or probes.runtime().state not in ("running", "degraded")
    ):
        return False
    change = probes.code_change()
    return change is None or change.at <= gateway.started_at


def _never(probes: Probes, began: datetime) -> Finding:
    return Finding(
        code="CRON-TICKER-DEAD",
        severity=_severity(probes),
        title="scheduled jobs do not run: the job scheduler did not start",
        subject="cron",
        detail=(
            "Probable causes: a damaged cron/executions.db (Hermes 0.19), or a folder cron/ that "
            "the gateway cannot write to."
        ),
        next="Look into the gateway's error output for `Exception in thread cron-scheduler`.",
        evidence=(
            Evidence(
                _BEAT, text("missing; the gateway has been running since {time}", time=ago(began))
            ),
        ),
        since=began,
    )
