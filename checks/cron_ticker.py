"""The part of a running gateway that begins jobs, and whether it still does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check

_SILENT = timedelta(seconds=300)
"""It looks once a minute; Hermes itself worries after 200 seconds."""


@check(id="cron-ticker", group="cron", codes=["CRON-TICKER-DEAD"])
def cron_ticker(probes: Probes) -> Iterator[Finding]:
    """Does the running gateway look for jobs that are due?"""
    gateways = probes.gateways()
    if not gateways:
        raise Skip("no gateway is seen to run")
    provider = probes.settings().config.get("cron")
    if isinstance(provider, dict) and provider.get("provider") not in (None, "", "builtin"):
        raise Skip("jobs are begun by another provider")
    ticker, began = probes.ticker(), gateways[0].started_at
    now = datetime.now(UTC)
    if ticker.beat is None or now - began < _SILENT:
        raise Skip("there is no telling yet, or this release leaves no sign of it")
    dead = now - ticker.beat > _SILENT
    last = ticker.beat if dead else ticker.success
    if not dead and (last is None or now - last < _SILENT):
        return
    assert last is not None
    name = "ticker_heartbeat" if dead else "ticker_last_success"
    yield Finding(
        code="CRON-TICKER-DEAD",
        severity=Severity.ERROR if probes.jobs() else Severity.WARNING,
        title=(
            "no job is begun: the part of the gateway that looks for them has stopped"
            if dead
            else "no job is begun: every look for jobs that are due fails"
        ),
        subject="cron",
        detail=(
            "The gateway goes on without it; a restart begins it anew."
            if dead
            else "errors.log says why (`Cron tick error`). A restart helps only if that is gone."
        ),
        evidence=(Evidence(f"cron/{name}", f"of {max(last, began):%Y-%m-%d %H:%M:%S} UTC"),),
        since=max(last, began),
        fix="restart-gateway" if dead else None,
        data={"pid": gateways[0].pid},
    )
