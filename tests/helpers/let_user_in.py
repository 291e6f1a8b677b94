"""Run a fix that grants one user access, from the finding to the undo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.helpers import locked_out_users, support


def fix(home: Path, *words: str) -> support.Done:
    """Run `fix --apply --json` with these arguments."""
    done = support.doctor("fix", *words, "--apply", "--json", "--home", home)
    assert locked_out_users.SECRET not in done.out + done.err
    return done


@contextmanager
def let_in(home: Path, code: str, subject: str) -> Iterator[None]:
    """Grant access; assert that a second fix does nothing and that undo restores every byte."""
    sick = support.contents(home)
    done = fix(home, code, "--subject", subject, "--yes")
    [run] = done.json["repair"]["runs"]
    [item] = run["items"]
    assert (item["code"], item["subject"], item["outcome"]) == (code, subject, "verified"), item
    cured = support.contents(home)
    yield
    again = fix(home, code, "--subject", subject, "--yes")
    assert again.json["repair"]["runs"] == []
    assert support.contents(home) == cured
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick


def left_alone(home: Path, *words: str, found: bool = True) -> None:
    """Assert that nothing is done, although the finding exists."""
    sick = support.contents(home)
    done = fix(home, *words)
    assert done.json["repair"]["runs"] == []
    assert bool(done.json["repair"]["plan"]) is found
    assert support.contents(home) == sick
