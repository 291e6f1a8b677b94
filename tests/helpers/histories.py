"""Reports, homes and recorders for tests of the history."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Finding, Gateway, Report, Verdict, VerdictKind
from hermes_doctor.operations.history.layout import readable
from hermes_doctor.operations.history.when_to_record import Recorder
from tests.helpers.watch_parts import finding, report

AT = datetime(2026, 11, 1, 4, 0, 0, tzinfo=UTC)
"""A full hour."""


def after(**more: float) -> datetime:
    """A moment after the first record, such as `after(minutes=5)`."""
    return AT + timedelta(**more)


def found(*findings: Finding | str, kind: str | None = None, **more: Any) -> Report:
    """A report with these findings; by default, with any of them the bot is silent."""
    made = [one if isinstance(one, Finding) else finding(one) for one in findings]
    given = VerdictKind(kind or ("not working" if made else "working"))
    status, reason = more.pop("status", None), more.pop("reason", None)
    base = report(*made, status=status, reason=reason)
    return base._replace(verdict=Verdict(given, ""), **more)


def gateway(pid: int, started: datetime) -> tuple[Gateway, ...]:
    """One running gateway."""
    return (Gateway(pid, started),)


def new_home(path: Path) -> Home:
    """An empty home."""
    path.mkdir(parents=True)
    (path / "config.yaml").write_text("model: x\n")
    return Home(path)


def recorder(folder: Path, **more: Any) -> Recorder:
    """A recorder for the home of a folder, with rounds of a minute; both are created."""
    path = folder / "home"
    home = more.pop("home", None) or (Home(path) if path.is_dir() else new_home(path))
    file = more.pop("file", None) or folder / "state" / "history.db"
    return Recorder(home, more.pop("interval", 60.0), boot="one", file=file, **more)


def rows(file: Path, table: str) -> list[dict[str, Any]]:
    """All rows of a table."""
    db = sqlite3.connect(file)
    db.row_factory, db.text_factory = sqlite3.Row, readable
    try:
        return [dict(row) for row in db.execute(f"SELECT * FROM {table} ORDER BY rowid")]
    finally:
        db.close()


def seconds(file: Path) -> dict[str, int]:
    """All seconds of the table of hours, by condition."""
    kinds = ("working", "limited", "silent")
    return {kind: sum(row[kind] for row in rows(file, "hours")) for kind in kinds}
