"""checkpoint-wal: what the log holds is in the database, and the log is gone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.helpers import damage, fix_cycle
from tests.helpers.fix_contract import Planted
from tests.helpers.one_check import ask


def huge(home: Path) -> Path:
    """A history with thirty more messages in a log that outgrew it; mostly a hole."""
    path = damage.with_log(fix_cycle.history(home / "state.db"), index=False)
    os.truncate(f"{path}-wal", 80 * 1024**2)
    return path


def test_takes_the_log_in(home: Path) -> None:
    """Every row of the log is there afterwards, and undo gives the log back."""
    path = huge(home)

    cured = fix_cycle.cure(home, "DB-WAL-HUGE", "checkpoint-wal")

    assert not Path(f"{path}-wal").exists()
    [(count,)] = fix_cycle.rows(path, "SELECT count(*) FROM messages WHERE timestamp >= 10000")
    assert count == 30
    cured.undo()


def test_not_under_a_process_that_uses_it(home: Path) -> None:
    """While somebody has it open the finding offers nothing."""
    with huge(home).open("rb") as file:
        holder = subprocess.Popen(["sleep", "60"], stdin=file)
    try:
        _, [finding] = ask("database-log", home)
    finally:
        holder.kill()
        holder.wait()

    assert (finding.code, finding.fix) == ("DB-WAL-HUGE", None)


PLANTED = Planted("DB-WAL-HUGE", huge)
