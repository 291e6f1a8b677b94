"""DB-SQLITE-WALRESET: the SQLite that a running gateway has loaded."""

from __future__ import annotations

import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hermes_doctor.core.model import Gateway, Severity, Status
from hermes_doctor.diagnosis.probes.database_users import DatabaseUsers
from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
from hermes_doctor.hermes.processes import sqlite_library
from hermes_doctor.hermes.processes.sqlite_library import Library
from tests.helpers import damage
from tests.helpers.one_check import ask

RISKY = ["3.7.0", "3.40.1", "3.44.5", "3.45.0", "3.50.6", "3.51.0", "3.51.2"]
SOUND = ["3.6.23", "3.44.6", "3.50.7", "3.51.3", "3.52.0", "4.0.0"]


def _library(version: str) -> Library:
    one, two, three = map(int, version.split("."))
    return Library((one, two, three), Path("/lib/libsqlite3.so"), 77)


@pytest.mark.parametrize("version", RISKY)
def test_risky(version: str) -> None:
    """The range that SQLite itself names."""
    assert _library(version).risky


@pytest.mark.parametrize("version", SOUND)
def test_sound(version: str) -> None:
    """Before it, after it, and the two repaired branches."""
    assert not _library(version).risky


def test_the_version_of_our_own_library() -> None:
    """The version that is read out of a process is the one that it has loaded."""
    found = sqlite_library.of(os.getpid(), deep=True)

    assert found is not None
    assert ".".join(map(str, found.version)) == sqlite3.sqlite_version


def test_no_gateway(home: Path) -> None:
    """At rest nothing can happen."""
    assert ask("sqlite-library", home)[0].status is Status.SKIPPED


@pytest.mark.parametrize(("holders", "severity"), [(1, Severity.INFO), (2, Severity.WARNING)])
def test_severity(
    home: Path, monkeypatch: pytest.MonkeyPatch, holders: int, severity: Severity
) -> None:
    """Only where several processes have a database open is there a danger."""
    damage.history(home / "state.db")
    gateway = Gateway(77, datetime.now(UTC))
    pids = tuple(range(77, 77 + holders))
    monkeypatch.setattr(GatewayView, "running", lambda _: [gateway])
    monkeypatch.setattr(GatewayView, "sqlite_library", lambda _: _library("3.40.1"))
    monkeypatch.setattr(DatabaseUsers, "holders", lambda *_: pids)

    _, [finding] = ask("sqlite-library", home)

    assert (finding.code, finding.severity) == ("DB-SQLITE-WALRESET", severity)


def test_repaired_release(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repaired release is no finding."""
    monkeypatch.setattr(GatewayView, "running", lambda _: [Gateway(77, datetime.now(UTC))])
    monkeypatch.setattr(GatewayView, "sqlite_library", lambda _: _library("3.51.3"))

    result, findings = ask("sqlite-library", home)

    assert (result.status, findings) == (Status.OK, [])
