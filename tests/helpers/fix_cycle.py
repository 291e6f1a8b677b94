"""Run one fix from the finding to the undo, with a secret in the rows that must not leak."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers import damage, support

SECRET = "zQcanaryKx9pLm2Tw"
"""Part of messages, titles and whatever else a test puts it into."""


KEEP_THE_CONTENT = ("give-back-owner", "set-aside-log")
"""Fixes that do not write into the database itself, so that no copy of it is needed."""


def history(path: Path, messages: int = 300, version: str | None = None) -> Path:
    """Create a history with the secret in many messages and in a title."""
    return support.remembered(path, _history, messages, version)


def _history(path: Path, messages: int, version: str | None) -> None:
    damage.history(path, messages, version)
    damage.execute(
        path,
        f"UPDATE messages SET content = '{SECRET} ' || content WHERE id % 7 = 0",
        f"UPDATE sessions SET title = '{SECRET}' WHERE id = 's3'",
    )


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """Return the result of a query on a database that is not in use."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as db:
        return db.execute(sql).fetchall()


def messages(path: Path) -> list[tuple[Any, ...]]:
    """Return the messages of a history."""
    return rows(path, "SELECT id, session_id, role, content, timestamp FROM messages ORDER BY id")


def found_by_search(path: Path, words: str) -> int:
    """Return the number of messages that a search finds."""
    sql = f"SELECT count(*) FROM messages_fts WHERE messages_fts MATCH '{words}'"
    return int(rows(path, sql)[0][0])


def parts(path: Path) -> dict[str, bytes]:
    """Return a database and the files next to it as bytes."""
    beside = path.parent.glob(f"{path.name}*")
    return {file.name: file.read_bytes() for file in beside if file.is_file()}


def silent(home: Path, *said: support.Done) -> None:
    """Assert that the secret is in no output and in no receipt."""
    for done in said:
        assert SECRET not in done.out + done.err
    for receipt in (home / "backups").rglob("*.json"):
        if "files" in receipt.relative_to(home).parts:  # backed-up files are unchanged
            continue
        assert SECRET not in receipt.read_text()


@dataclass
class Cured:
    """A home after its fix."""

    home: Path
    sick: dict[str, tuple[Any, ...]]
    notes: list[str]
    steps: list[str]
    before: list[str]
    """Why each fix that was tried first was not enough."""

    def undo(self) -> None:
        """Undo the fix, and assert that all bytes, modes and owners are restored."""
        done = support.doctor("undo", "--yes", "--home", self.home)
        assert done.code == 0, done
        assert support.contents(self.home) == self.sick
        silent(self.home, done)


def cure(
    home: Path, code: str, fix: str, subject: str = "state.db", *more: str, then: str = ""
) -> Cured:
    """Find, fix and back up a problem; assert that a second fix does nothing.

    With `then` the fix is not enough, and `then` is tried next.
    """
    sick = support.contents(home)
    before = parts(home / subject)
    checked = support.check(home, *more)
    finding = support.finding(checked, code)
    assert (finding["subject"], finding["fix"]["id"]) == (subject, fix)

    done = apply(home, code, *more)

    assert done.code == 0, done.out + done.err
    assert code not in done.codes
    *tried, run = done.json["repair"]["runs"]
    [item] = run["items"]
    assert (item["fix"], item["outcome"]) == (then or fix, "verified"), item
    failed = [(one["fix"], one["outcome"]) for early in tried for one in early["items"]]
    assert failed == ([(fix, "not-enough")] if then else [])
    kept = parts(Path(run["backup"]) / "files" / subject)
    assert kept.items() <= before.items()
    name = subject.rpartition("/")[2]
    assert name in kept or name not in before or fix in KEEP_THE_CONTENT
    cured = support.tree(home, times=False, vault=True)
    again = apply(home, code, *more)
    assert (again.code, again.json["repair"]["runs"]) == (0, [])
    assert support.tree(home, times=False, vault=True) == cured
    silent(home, checked, done, again)
    why = [one["reason"] for early in tried for one in early["items"]]
    return Cured(home, sick, item["notes"], item["steps"], why)


def refused(home: Path, code: str, *more: str) -> str:
    """Return why the fix is refused; no byte of the home may change."""
    sick = support.contents(home)

    done = apply(home, code, *more)

    assert done.code == 1, done.out + done.err
    assert code in done.codes
    assert support.contents(home) == sick
    silent(home, done)
    document = done.json["repair"]
    reasons = [i["reason"] for run in document["runs"] for i in run["items"] if i["code"] == code]
    reasons += [one["refusal"] for one in document["plan"] if one["code"] == code]
    [reason] = {reason for reason in reasons if reason}
    assert "\n" not in reason
    return str(reason)


def apply(home: Path, code: str, *more: str) -> support.Done:
    """Apply the fix of one code."""
    return support.doctor("fix", code, "--apply", "--yes", "--json", "--home", home, *more)
