"""A log that was set aside may hold rows that the history lacks."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.core.model import Severity
from tests.helpers import damage, fix_cycle, support
from tests.helpers.one_check import ask


def test_it_is_information(home: Path) -> None:
    """It is a choice and no problem: the check ends well."""
    damage.foreign_log(fix_cycle.history(home / "state.db", 600))
    assert fix_cycle.apply(home, "DB-WAL-STALE").code == 0

    _, [finding] = ask("database-aside", home)

    assert (finding.severity, finding.fix) == (Severity.INFO, "add-log-rows")
    assert support.check(home, "--only", "databases").code == 0


def test_a_healthy_home(home: Path) -> None:
    """Without a log that was set aside there is nothing to say."""
    fix_cycle.history(home / "state.db")

    result, findings = ask("database-aside", home)

    assert (result.status, findings) == ("skipped", [])
