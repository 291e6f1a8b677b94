"""KANBAN-STUCK: tasks that a worker holds which is no more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.helpers.claimed_tasks import claim
from tests.helpers.cron_homes import running
from tests.helpers.one_check import ask


def test_healthy(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing held, held by the living, held for a while yet, or by another machine."""
    running(monkeypatch, 60)
    assert ask("kanban-claims", home)[1] == []
    claim(home / "kanban.db", "t2", os.getpid())
    claim(home / "kanban.db", "t3", minutes=5)
    claim(home / "kanban.db", "t4", host="elsewhere")
    result, found = ask("kanban-claims", home)
    assert (result.status, found) == ("ok", [])


@pytest.mark.parametrize(("gateway", "words"), [(60, "but did not"), (None, "of its start")])
def test_held_by_the_dead(
    home: Path, monkeypatch: pytest.MonkeyPatch, gateway: float | None, words: str
) -> None:
    """Each board is reported separately, with or without a running gateway."""
    running(monkeypatch, gateway)
    claim(home / "kanban.db", "t2")
    claim(home / "kanban/boards/b1/kanban.db", "t3")

    found = ask("kanban-claims", home)[1]

    assert [one.subject for one in found] == ["kanban.db", "kanban/boards/b1/kanban.db"]
    assert {(one.code, one.severity, one.fix) for one in found} == {
        ("KANBAN-STUCK", "error" if gateway else "warning", "release-claims")
    }
    assert all(words in one.detail for one in found)
