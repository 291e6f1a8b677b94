"""A board that was replaced is judged by its newest evidence, and by nothing about state.db."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.helpers import support

BAD = (
    "ERROR gateway.run: kanban dispatcher: board default database {home}/kanban.db is not a valid "
    "SQLite database; pausing dispatch for this board until the file changes, the gateway "
    "restarts, or the quarantine timer expires."
)
CHANGED = "INFO gateway.run: kanban dispatcher: board default database changed; retrying dispatch"


def write_log(home: Path, *lines: str) -> None:
    """Write lines of the last minutes into the log of the gateway."""
    start = datetime.now() - timedelta(minutes=len(lines))
    dated = [
        f"{start + timedelta(minutes=n):%Y-%m-%d %H:%M:%S},004 {line.format(home=home)}\n"
        for n, line in enumerate(lines)
    ]
    support.put(home / "logs" / "gateway.log", "".join(dated))


@pytest.mark.parametrize("history", ["sound", "damaged"])
@pytest.mark.parametrize("lines", [(BAD,), (BAD, CHANGED)], ids=["error", "error and retry"])
def test_a_sound_board(home: Path, lines: tuple[str, ...], history: str) -> None:
    """The board is sound now: the line is over, whatever state of the history."""
    write_log(home, *lines)
    if history == "damaged":
        support.put(home / "state.db", b"<html>\n" * 2000)

    found = support.check(home)

    assert "KANBAN-CORRUPT" not in found.codes
    assert ("DB-NOTADB" in found.codes) is (history == "damaged")


def test_a_board_that_is_still_damaged(home: Path) -> None:
    """The log belongs to the board's own problem, and not to that of state.db."""
    write_log(home, BAD, CHANGED, BAD)
    for name in ("state.db", "kanban.db"):
        support.put(home / name, b"<html>\n" * 2000)

    found = support.check(home).json["findings"]

    problems = {(one["code"], one["subject"]): one["caused_by"] for one in found}
    assert problems["DB-NOTADB", "kanban.db"] is None
    assert problems["DB-NOTADB", "state.db"] is None
    assert problems["KANBAN-CORRUPT", "default"] == "DB-NOTADB"
