"""DB-BLOAT and DB-BACKUP-CLUTTER: space that is taken without need."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from hermes_doctor.core.model import Severity, Status
from tests.helpers import damage, support
from tests.helpers.one_check import ask, codes

MEGABYTE = 1024**2


def test_healthy(home: Path) -> None:
    """Some free pages and one copy of a damaged state are normal."""
    damage.history(home / "state.db")
    support.put(home / "state.db.malformed-backup-20260101_000000", b"x" * 8192)

    result, findings = ask("database-size", home)

    assert (result.status, findings) == (Status.OK, [])


@pytest.mark.parametrize(("free", "severity"), [(100, "info"), (600, "warning")])
def test_bloat(home: Path, free: int, severity: str) -> None:
    """More than half of a large file is free; the file is mostly a hole here."""
    path = support.database(home / "projects.db", "CREATE TABLE t (a)")
    pages, free_pages = free * MEGABYTE * 5 // 4 // 4096, free * MEGABYTE // 4096
    os.truncate(path, pages * 4096)
    damage.write(path, struct.pack(">I", pages), 28)
    trunk, rest, numbers = 3, free_pages, iter(range(4, pages))
    damage.write(path, struct.pack(">II", trunk, free_pages), 32)
    while rest:
        leaves = min(1000, rest - 1)
        following = next(numbers) if rest - 1 - leaves else 0
        entries = [next(numbers) for _ in range(leaves)]
        page = struct.pack(f">II{leaves}I", following, leaves, *entries)
        damage.write(path, page, (trunk - 1) * 4096)
        trunk, rest = following, rest - 1 - leaves

    found = [f for f in ask("database-size", home)[1] if f.code == "DB-BLOAT"]

    assert [finding.severity for finding in found] == [severity]
    assert found[0].data["free"] == free * MEGABYTE


def test_clutter(home: Path) -> None:
    """Copies that pile up, with their sidecars; large ones are a warning."""
    damage.history(home / "state.db")
    for n in range(4):
        name = f"state.db.malformed-backup-2026010{n}_000000"
        support.put(home / name, b"x" * 8192)
        support.put(home / f"{name}-wal", b"")

    _, [finding] = ask("database-size", home)
    assert (finding.code, finding.severity) == ("DB-BACKUP-CLUTTER", Severity.INFO)
    assert finding.title.startswith("4 copies")
    assert len(finding.data["paths"]) == 8

    os.truncate(home / "state.db.malformed-backup-20260100_000000", 2 * 1024 * MEGABYTE)
    _, [finding] = ask("database-size", home)
    assert finding.severity is Severity.WARNING
    assert (finding.caused_by, finding.fix) == (None, "set-aside-copies")


def test_clutter_has_its_cause(home: Path) -> None:
    """While the database is damaged, the copies are its consequence."""
    damage.rows_zeroed(damage.history(home / "state.db"))
    for n in range(3):
        support.put(home / f"state.db.malformed-backup-2026010{n}_000000", b"x" * 8192)

    _, [finding] = ask("database-size", home)

    assert (finding.caused_by, finding.fix) == ("DB-MALFORMED", None)
    assert "Repair state.db before" in finding.next
    assert codes(home) == ["DB-MALFORMED"]


def test_clutter_of_a_board(home: Path) -> None:
    """Boards have a name of their own for such copies."""
    for n in range(3):
        support.put(home / f"kanban.db.corrupt.{n:016x}.bak", b"x" * 8192)

    _, [finding] = ask("database-size", home)

    assert (finding.code, finding.subject) == ("DB-BACKUP-CLUTTER", "kanban.db")
