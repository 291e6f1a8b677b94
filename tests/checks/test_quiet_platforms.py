"""PLATFORM-DEAF: no message at a time when there always were some."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.helpers.gateway_home import QQ, Scene, ask
from tests.helpers.log_lines import line, write

DAY, HOUR = 86_400.0, 3600.0
IN = "inbound message: platform=qqbot user=op chat=7001 msg='hello'"


def _plant(home: Path, silent: float, days: int = 4, every: float = HOUR) -> None:
    """Write a log with a message every hour, except in the last hours."""
    now = time.time() - 30
    times = [now - silent - n * every for n in range(int((days * DAY - silent) / every))]
    lines = [line(at, IN) for at in reversed(times)]
    lines.append(line(now, "Cron tick"))
    write(home / "logs" / "gateway.log", lines, now)


def test_quiet(home: Path) -> None:
    """Five hours without a message, which never happened before."""
    _plant(home, 5 * HOUR)

    [finding] = ask("quiet-platforms", Scene(home, QQ))[1]

    assert (finding.code, finding.severity, finding.subject) == (
        "PLATFORM-DEAF",
        "warning",
        "qqbot",
    )
    assert "5 h" in finding.evidence[0].what


@pytest.mark.parametrize(
    ("silent", "days", "every"), [(HOUR, 4, HOUR), (5 * HOUR, 2, HOUR), (5 * HOUR, 4, 7 * HOUR)]
)
def test_healthy(home: Path, silent: float, days: int, every: float) -> None:
    """A short silence, too few days to compare, or users who write seldom."""
    _plant(home, silent, days, every)

    assert ask("quiet-platforms", Scene(home, QQ))[1] == []


def test_no_log(home: Path) -> None:
    """Without a log there is nothing to compare."""
    assert ask("quiet-platforms", Scene(home, QQ))[0].status == "skipped"


@pytest.mark.parametrize(("days", "reported"), [(4, False), (7, True)])
def test_weekdays_say_nothing_about_a_weekend(
    home: Path, monkeypatch: pytest.MonkeyPatch, days: int, reported: bool
) -> None:
    """On a Saturday, four weekdays are no history; a week with a weekend is."""
    saturday = time.mktime((2026, 11, 14, 18, 0, 0, 0, 0, -1))
    monkeypatch.setattr(time, "time", lambda: saturday)
    _plant(home, 5 * HOUR, days)

    assert bool(ask("quiet-platforms", Scene(home, QQ))[1]) == reported
