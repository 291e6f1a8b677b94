"""Run the fix of one mistake in the settings, from the finding to the undo, with the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.helpers import fix_cycle, settings_verdicts, support
from tests.helpers.provider_mistakes import Mistake

write = settings_verdicts.write
contents = support.contents


def _quiet(*said: support.Done) -> None:
    for done in said:
        assert "canary" not in done.out + done.err


def cure(home: Path, mistake: Mistake) -> None:
    """Find and fix the mistake; assert that a second fix does nothing."""
    checked = support.check(home, "--fail-on", "critical")
    finding = support.finding(checked, mistake.code)
    assert (finding["severity"], finding["fix"]["id"]) == (mistake.severity, mistake.fix)

    done = fix_cycle.apply(home, mistake.code)

    assert done.code == 0, done.out + done.err
    assert mistake.code not in done.codes
    [run] = done.json["repair"]["runs"]
    assert {(one["fix"], one["outcome"]) for one in run["items"]} == {(mistake.fix, "verified")}
    cured = support.contents(home)
    again = fix_cycle.apply(home, mistake.code)
    assert (again.code, again.json["repair"]["runs"]) == (0, [])
    assert support.contents(home) == cured
    _quiet(checked, done, again)
    for receipt in (home / "backups").rglob("*.json"):
        assert "canary" not in receipt.read_text()


def undo(home: Path, sick: dict[str, tuple[Any, ...]]) -> None:
    """Undo the fix, and assert that all bytes, modes and owners are restored."""
    done = support.doctor("undo", "--yes", "--home", home)
    assert done.code == 0, done
    assert support.contents(home) == sick


def refused(home: Path, mistake: Mistake) -> str:
    """Return why the fix is refused."""
    return fix_cycle.refused(home, mistake.code)
