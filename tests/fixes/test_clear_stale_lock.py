"""Stale pid and lock files."""

from __future__ import annotations

import fcntl
from pathlib import Path

from tests.helpers import fix_cycle, support
from tests.helpers.fix_contract import Planted

OWNER = '{"pid": 4194000, "kind": "hermes-gateway", "argv": [], "start_time": 1}'


def stale(home: Path) -> Path:
    """A home whose gateway was killed."""
    support.put(home / "gateway.pid", OWNER)
    support.put(home / "gateway.lock", OWNER)
    return home


def test_cured(home: Path) -> None:
    """Both go into the vault, once, and come back with undo."""
    cured = fix_cycle.cure(stale(home), "GW-STALE-PID", "clear-stale-lock", "gateway.pid")
    assert not (home / "gateway.pid").exists() and not (home / "gateway.lock").exists()
    cured.undo()


def test_held(home: Path) -> None:
    """What the kernel says is held stays, whatever the files say."""
    with (stale(home) / "gateway.lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = fix_cycle.apply(home, "GW-STALE-PID")
    assert done.json["repair"]["runs"] == []
    assert (home / "gateway.pid").read_text() == OWNER


PLANTED = Planted("GW-STALE-PID", stale)
