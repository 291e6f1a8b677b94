"""RESPSTORE: rows of the API server's cache that fail requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.core.model import Status
from tests.helpers import damage, support
from tests.helpers.one_check import ask

_SCHEMA = (
    "CREATE TABLE responses (response_id TEXT PRIMARY KEY, data TEXT NOT NULL, "
    "accessed_at REAL NOT NULL)",
    "CREATE TABLE conversations (name TEXT PRIMARY KEY, response_id TEXT NOT NULL)",
    "INSERT INTO responses VALUES ('r1', '{\"a\": 1}', 1.0), ('r2', '{}', 2.0), \n"
    "('r3', '{\"a\": [NaN, -Infinity]}', 3.0)",
    "INSERT INTO conversations VALUES ('c1', 'r1')",
)
FAULTS = {
    "no JSON": ("UPDATE responses SET data = '{broken' WHERE response_id = 'r1'", 1, 0),
    "a blob": ("UPDATE responses SET data = x'7b7d' WHERE response_id = 'r1'", 1, 0),
    "dangling": ("INSERT INTO conversations VALUES ('c2', 'gone')", 0, 1),
}


def test_healthy(home: Path) -> None:
    """A sound cache, an empty one and none at all show nothing."""
    assert ask("response-store", home)[0].status is Status.SKIPPED
    support.database(home / "response_store.db", *_SCHEMA)
    assert ask("response-store", home)[1] == []
    damage.execute(home / "response_store.db", "DELETE FROM conversations", "DELETE FROM responses")
    result, findings = ask("response-store", home)
    assert (result.status, findings) == (Status.OK, [])


@pytest.mark.parametrize("case", FAULTS)
def test_rows(home: Path, case: str) -> None:
    """Each kind is counted and can be taken out."""
    statement, bad, dangling = FAULTS[case]
    support.database(home / "response_store.db", *_SCHEMA, statement)

    _, [finding] = ask("response-store", home)

    assert finding.code == "RESPSTORE"
    assert (finding.fix, finding.data) == ("evict-responses", {"bad": bad, "dangling": dangling})


def test_a_damaged_file_is_told_once(home: Path) -> None:
    """A cache that cannot be read has no rows to ask about; the header's check tells of it."""
    support.put(home / "response_store.db", b"not a database at all\n" * 300)

    assert ask("response-store", home)[0].status is Status.SKIPPED
    _, [finding] = ask("database-header", home)
    assert (finding.code, finding.fix) == ("DB-NOTADB", "set-aside-cache")
