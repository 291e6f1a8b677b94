"""evict-responses: bad rows go, good ones stay."""

from __future__ import annotations

from pathlib import Path

from tests.helpers import fix_cycle, support
from tests.helpers.fix_contract import Planted
from tests.helpers.fix_cycle import SECRET


def store(home: Path, *statements: str) -> Path:
    """A store of two good answers and a conversation that leads to one of them."""
    path = home / "response_store.db"
    support.made("response_store.db", path).close()
    return support.database(
        path,
        f"INSERT INTO responses VALUES ('r1', '{{\"a\": \"{SECRET}\"}}', 1), ('r2', '{{}}', 2)",
        "INSERT INTO conversations VALUES ('c1', 'r1')",
        *statements,
    )


def test_bad_rows_go(home: Path) -> None:
    """No JSON, a blob, and conversations that lead to nothing or to what is evicted."""
    path = store(
        home,
        f"INSERT INTO responses VALUES ('r3', '{{broken {SECRET}', 3), ('r4', x'7b7d', 4)",
        f"INSERT INTO conversations VALUES ('c2', 'r3'), ('{SECRET}', 'never there')",
    )

    cured = fix_cycle.cure(home, "RESPSTORE", "evict-responses", "response_store.db")

    ids = fix_cycle.rows(path, "SELECT response_id FROM responses ORDER BY 1")
    assert ids == [("r1",), ("r2",)]
    assert fix_cycle.rows(path, "SELECT name FROM conversations") == [("c1",)]
    assert cured.notes == [
        "2 responses that cannot be read were removed, "
        "and 2 conversations whose response is missing."
    ]
    cured.undo()


PLANTED = Planted(
    "RESPSTORE", lambda home: store(home, "INSERT INTO responses VALUES ('r3', '{broken', 3)")
)
