"""The history is written by a process of its own, and what that process learned is kept."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.operations.watch.child_process import ChildProcesses
from tests.helpers.histories import rows
from tests.helpers.watch_parts import copies, finding, report
from tests.operations.watch.test_rounds import with_history

SICK, WELL = report(finding("A")), report()


def test_changes_are_recorded(home: Path) -> None:
    """One record for each change, as if the watch wrote itself."""
    made, heard, clock = with_history(home, [SICK, SICK, WELL, WELL])
    assert made.history
    made.history.apart = ChildProcesses().result_or_reason
    for number in range(4):
        made.round(begins=number == 0)
        clock.turn(30)
    file = made.history.file
    assert [row["code"] for row in rows(file, "episodes")] == ["A"]
    assert "note" not in heard.kinds
    assert made.history._verified and not made.history._off
    assert not copies()


def test_a_damaged_history_is_set_aside(home: Path) -> None:
    """The note comes from the process that writes; later rounds write into the new file."""
    made, heard, clock = with_history(home, [SICK, WELL])
    assert made.history
    made.history.apart = ChildProcesses().result_or_reason
    made.history.file.parent.mkdir(parents=True, exist_ok=True)
    made.history.file.write_bytes(b"not a database" * 1000)
    for number in range(2):
        made.round(begins=number == 0)
        clock.turn(30)
    assert [one.title for one in heard if "the history was damaged" in one.title]
    assert [row["code"] for row in rows(made.history.file, "episodes")] == ["A"]


def test_a_process_that_is_killed_is_one_note(home: Path) -> None:
    """The watch goes on, and writes again in the next round."""
    made, heard, clock = with_history(home, [SICK, SICK])
    history, children = made.history, ChildProcesses()
    assert history
    history.apart = lambda _: children.result_or_reason(lambda: os.kill(os.getpid(), 9))
    made.round(begins=True)
    assert heard[-1].title.startswith("could not write the history: its process was killed")
    history.apart = children.result_or_reason
    clock.turn(30)
    made.round(begins=False)
    assert [row["code"] for row in rows(history.file, "episodes")] == ["A"]
