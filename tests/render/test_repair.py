"""The plan of `fix`, as text."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.backup.records.journal import ItemRecord, Journal
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.render.repair import plan_lines, result_lines
from hermes_doctor.repair.steps.files import SetMode
from hermes_doctor.repair.transaction.plan import PlannedItem
from tests.helpers.watch_parts import finding, report

_NONE: frozenset[tuple[str, str]] = frozenset()


def test_what_ends_with_its_cause_needs_nobody(tmp_path: Path) -> None:
    """The log line of a damaged database asks for no work if the plan repairs the database."""
    cause = finding("DB-MALFORMED", fix="mend")
    effect = finding("DB-FTS-CORRUPT", caused_by="DB-MALFORMED", next="Run `fix` for the index.")
    other = finding("GW-UNSUPERVISED", next="Install cron.")
    mend = SetMode(tmp_path, 0o700, "close it", snapshot(tmp_path))

    def left(*steps: SetMode) -> list[str]:
        planned = [PlannedItem(one, None, ()) for one in (effect, other)]
        planned.insert(0, PlannedItem(cause, None, steps))
        found = report(cause, effect, other)
        every = [str(line) for line in plan_lines(planned, tmp_path, "", "", found)]
        needs = [line for line in every if "Needs you" in line]
        return [code for code in ("DB-FTS-CORRUPT", "GW-UNSUPERVISED") if code in str(needs)]

    assert left(mend) == ["GW-UNSUPERVISED"]
    assert left() == ["DB-FTS-CORRUPT", "GW-UNSUPERVISED"]


def test_a_cause_without_advice_needs_nobody(tmp_path: Path) -> None:
    """A gateway that died asks for no work if the plan starts it, and for some otherwise."""
    died = finding("GW-DIED")
    down = finding("GW-DOWN", caused_by="GW-DIED", fix="start-gateway")
    start = SetMode(tmp_path, 0o700, "start it", snapshot(tmp_path))

    def shown(*steps: SetMode) -> str:
        planned = [PlannedItem(died, None, ()), PlannedItem(down, None, steps)]
        return str([*plan_lines(planned, tmp_path, "", "", report(died, down))])

    assert "Needs you" not in shown(start)
    assert "Needs you" in shown()


def test_a_change_that_repairs_no_problem(tmp_path: Path) -> None:
    """A plan without problems counts its changes, not "0 of 0 problems"."""
    stopped = finding("GW-DOWN", severity="info")
    start = SetMode(tmp_path, 0o700, "start it", snapshot(tmp_path))
    planned = [PlannedItem(stopped, None, (start,))]

    shown = str([*plan_lines(planned, tmp_path, "", "", report(stopped))])
    assert "No problem to repair; 1 change, no question" in shown


def run(number: int, **outcomes: str) -> Journal:
    """A run with one item for each subject, which ended like this."""
    items = [
        ItemRecord("mend", "BAD", subject, "looks", outcome=outcome)
        for subject, outcome in outcomes.items()
    ]
    return Journal(f"run-{number}", "fix", "/home", "", "2026-01-02T03:04:05", items=items)


def counted(
    *runs: Journal, left: str = "", before: str = "", declined: frozenset[tuple[str, str]] = _NONE
) -> str:
    """The numbers in the result."""
    after = report(*(finding("BAD", subject=one) for one in left))
    planned = report(*(finding("BAD", subject=one) for one in before)) if before else None
    lines = result_lines(after, runs, "", declined, planned)
    said = " ".join("".join(word for word, _ in line.spans) for line in lines)
    return said.partition("Repaired ")[2].partition(".")[0]


def test_the_result_counts_what_the_plan_counted() -> None:
    """A problem that waited for the repair of the same file and is gone counts as repaired."""
    assert counted(run(1, a="verified", b="left")) == "2 of 2"
    assert counted(run(1, a="verified", b="left"), left="b") == "1 of 2"
    assert counted(run(1, a="not-enough"), run(2, a="verified")) == "1 of 1"
    assert counted(run(1, a="verified"), declined=frozenset({("BAD", "b")})) == "1 of 2"
    assert counted(run(1, a="verified", b="verified"), before="ab") == "1 of 1", "one number"
    assert counted(run(1, a="verified", b="failed"), before="ab", left="b") == "0 of 1"
