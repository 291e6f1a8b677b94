"""Hermes' own count of restarts that interrupted answers."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hermes_doctor.core.model import Status
from tests.helpers import support
from tests.helpers.one_check import ask

ID = "restart-loop"


@pytest.mark.parametrize(
    ("ago", "found"),
    [
        ([300, 200, 100], True),
        ([3000, 800, 550, 300, 100], True),
        ([200, 100], False),
        ([9000, 5000, 100], False),
        ([90_300, 90_200, 90_100], False),
    ],
)
def test_chains(home: Path, ago: list[int], found: bool) -> None:
    """Three starts in a row within the last hour."""
    boots = [time.time() - one for one in ago]
    support.put(home / "gateway/restart_loop.json", json.dumps({"boots": boots}))

    findings = ask(ID, home)[1]

    assert [one.code for one in findings] == (["GW-CRASH-LOOP"] if found else [])


def test_missing_or_odd(home: Path) -> None:
    """Without the file or its list there is nothing to say; an odd one could not be read."""
    assert ask(ID, home)[0].status is Status.SKIPPED
    support.put(home / "gateway/restart_loop.json", "[]")
    assert ask(ID, home)[0].status is Status.SKIPPED
    for said in ("x", '{"boots": ["a"]}', '{"boots": [1e300]}'):
        support.put(home / "gateway/restart_loop.json", said)
        assert ask(ID, home)[0].status is Status.UNKNOWN
