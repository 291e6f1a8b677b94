"""A history of four weeks, for the screens of tests and documentation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Finding, Gateway, Report, Severity
from hermes_doctor.operations.history import database, write_observation
from hermes_doctor.operations.history.layout import HOUR
from hermes_doctor.operations.history.observation import observe
from hermes_doctor.operations.history.write_observation import Continuity
from tests.helpers.histories import found

STEP = timedelta(minutes=10)
QQ = Finding("QQ-TOKEN", Severity.ERROR, "QQ rejects the app secret", subject="qq", check="looks")
DNS = Finding(
    "NET-DNS",
    Severity.WARNING,
    "names cannot be resolved",
    subject="api.telegram.org",
    check="looks",
)
SCHEMA = Finding(
    "DB-SCHEMA", Severity.ERROR, "state.db lacks a column", subject="state.db", check="looks"
)


def record(home: Path, file: Path, now: datetime) -> None:
    """Record 26 days until now: QQ three times, DNS six times, an update, three days of sleep."""
    at, last = now - timedelta(days=26), None
    with database.transaction(file) as db:
        while at <= now:
            age = (now - at) / timedelta(hours=1)
            seen = observe(_at(age, now), at)
            quiet = last is not None and not seen.differs(last) and seen.at - last.at < HOUR
            if not 200 < age < 270 and not (quiet and at + STEP <= now):
                write_observation.record(db, Home(home), seen, Continuity(HOUR), "boot")
                last = seen
            at += STEP


def _at(age: float, now: datetime) -> Report:
    qq = 400 < age < 404 or 120 < age < 121 or age < 1.5
    kinds = [QQ] * qq + [DNS] * (int(age) % 90 == 3) + [SCHEMA] * (70 < age < 75.9)
    verdict = "not working" if qq else "limited" if kinds else "working"
    new = age <= 76
    started = now.astimezone(UTC) - timedelta(hours=76 if new else 700)
    return found(
        *kinds,
        kind=verdict,
        hermes_version="0.19.0" if new else "0.18.2",
        gateways=(Gateway(200 if new else 100, started),),
    )
