"""Rows that are sound to SQLite and stop Hermes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.model import Finding, Severity, Status
from hermes_doctor.diagnosis.probes.hermes_view import HermesView
from hermes_doctor.hermes.installation.find import Installation
from hermes_doctor.sqlite.examine import condition
from tests.helpers import damage
from tests.helpers.one_check import ask


@pytest.fixture(params=["memory", "process"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small databases and large ones."""
    if request.param == "process":
        monkeypatch.setattr(condition, "SMALL_BYTES", 0)
        monkeypatch.setattr(condition, "QUERY_SECONDS", 1.0)


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The release that is installed; a test puts it here."""
    chosen = ["0.19.0"]
    monkeypatch.setattr(
        HermesView, "installation", lambda _: Installation(chosen[0], Path("/"), running=False)
    )
    yield chosen


def look(home: Path, *statements: str, deep: bool = False) -> list[Finding]:
    """What is found after these changes to a sound history."""
    damage.execute(damage.history(home / "state.db"), *statements)
    return ask("database-rows", home, deep=deep)[1]


@pytest.mark.sampled
@pytest.mark.parametrize("deep", [False, True])
def test_healthy(home: Path, release: list[str], deep: bool) -> None:
    """A sound history shows nothing, whatever the release; a newer one is not judged."""
    damage.history(home / "state.db")
    for release[0] in ("0.13.0", "0.16.0", "0.18.0", "0.19.0", "1.0"):
        result, findings = ask("database-rows", home, deep=deep)
        expected = Status.SKIPPED if release[0] == "1.0" else Status.OK
        assert (result.status, findings) == (expected, [])


_LOOSE = (
    "PRAGMA writable_schema=ON",
    "UPDATE sqlite_master SET sql = replace(sql, 'active INTEGER NOT NULL DEFAULT 1', "
    "'active INTEGER') WHERE name = 'messages'",
)


@pytest.mark.parametrize(
    ("version", "severity"),
    [("0.15.2", None), ("0.16.0", "error"), ("0.18.0", "error"), ("0.18.1", "info")],
)
def test_active_null(home: Path, release: list[str], version: str, severity: str | None) -> None:
    """Only three releases leave such messages out; later ones set them right."""
    release[0] = version
    path = damage.history(home / "state.db")
    damage.surgery(path, _LOOSE[1])
    damage.execute(path, "UPDATE messages SET active = NULL WHERE id > 500")

    found = [f for f in ask("database-rows", home)[1] if f.code == "DB-ACTIVE-NULL"]

    assert [finding.severity for finding in found] == ([severity] if severity else [])


@pytest.mark.parametrize(("version", "severity"), [("0.18.2", "error"), ("0.19.0", "info")])
def test_titles(home: Path, release: list[str], version: str, severity: str) -> None:
    """Two sessions with one title, and no index that forbids it."""
    release[0] = version
    found = look(
        home,
        "DROP INDEX idx_sessions_title_unique",
        "UPDATE sessions SET title = 'same' WHERE id IN ('s1', 's2')",
    )

    assert [(f.code, f.severity) for f in found] == [("DB-TITLES", severity)]


def test_titles_with_their_index(home: Path, release: list[str]) -> None:
    """With the index there is nothing to look for."""
    found = look(home)

    assert found == []


@pytest.mark.parametrize(
    ("version", "severity"), [("0.16.0", "info"), ("0.17.0", "error"), ("0.19.0", "error")]
)
@pytest.mark.parametrize("value", ["'{broken'", "''", "x'7b7d'"])
def test_json(home: Path, release: list[str], version: str, severity: str, value: str) -> None:
    """One session's settings that are no JSON break the list of all from 0.17 on."""
    release[0] = version
    found = look(home, f"UPDATE sessions SET model_config = {value} WHERE id = 's7'")

    assert [(f.code, f.severity) for f in found] == [("DB-JSON", severity)]
    assert found[0].data["count"] == 1


@pytest.mark.parametrize("value", ["'twenty-two'", "x'16'", "22.5"])
def test_schema_version(home: Path, release: list[str], value: str) -> None:
    """A version that is no number stops every release."""
    found = look(home, f"UPDATE schema_version SET version = {value}")

    assert [(f.code, f.severity) for f in found] == [("DB-SCHEMAVERSION", Severity.CRITICAL)]


def test_damage_silences(home: Path, release: list[str]) -> None:
    """Where the database itself is damaged there are no rows to ask about."""
    damage.table_lost(damage.history(home / "state.db"))

    result, findings = ask("database-rows", home)

    assert (result.status, findings) == (Status.SKIPPED, [])


def test_no_history(home: Path) -> None:
    """Without a state.db the question does not apply."""
    (home / "state.db").unlink()

    assert ask("database-rows", home)[0].status is Status.SKIPPED
