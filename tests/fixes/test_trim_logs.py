"""Logs and dumps that have grown without an end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import fix_cycle, support
from tests.helpers.fix_contract import Planted
from tests.helpers.real.gateways import end


def flooded(home: Path, name: str = "gateway-exit-diag.log") -> Path:
    """A log of 21 MB, most of it a hole."""
    path = support.put(home / "logs" / name, "the first line\n")
    os.truncate(path, 21 * 1024**2)
    with path.open("a") as file:
        file.write("\nthe last line\n")
    return path


def test_log(home: Path) -> None:
    """Its newest part stays; undo brings the whole file back byte for byte."""
    path = flooded(home)
    cured = fix_cycle.cure(home, "LOG-FLOOD", "trim-logs", "logs/gateway-exit-diag.log")
    assert path.read_text() == "the last line\n"
    cured.undo()


@pytest.mark.wide
def test_dumps(home: Path) -> None:
    """The newest stay, to see what the provider answers."""
    for n in range(1001):
        path = support.put(home / "sessions" / f"request_dump_{n:04}.json", "{}")
        os.utime(path, (n + 1, n + 1))
    plan = support.doctor("fix", "REQUEST-DUMPS", "--home", home).out
    assert "request_dump_0000.json: move it to the vault, because newer ones stay" in plan
    assert "→ and 975 more like these\n" in plan
    assert len(plan.splitlines()) < 20
    done = fix_cycle.apply(home, "REQUEST-DUMPS")
    assert done.code == 0, done.out + done.err
    left = sorted(path.name for path in (home / "sessions").iterdir())
    assert left == [f"request_dump_{n:04}.json" for n in range(981, 1001)]
    asked = support.doctor("undo", "--home", home)
    assert "→ and 976 more like these\n" in asked.out and len(asked.out.splitlines()) < 20
    undone = support.doctor("undo", "--yes", "--home", home)
    assert undone.code == 0
    assert "✓ and 976 more: restored\n" in undone.out and len(undone.out.splitlines()) < 20
    assert len(list((home / "sessions").iterdir())) == 1001


@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["a", "r"])
def test_somebody_has_it_open(home: Path, mode: str) -> None:
    """A stranger who writes into it would lose his lines: refused. One who reads loses nothing."""
    path = flooded(home)
    script = f"import sys, time; file = open({str(path)!r}, {mode!r}); print('open', flush=True)"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{script}; time.sleep(100)"],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"open\n"
        done = fix_cycle.apply(home, "LOG-FLOOD")
        [plan] = [one for one in done.json["repair"]["plan"] if one["code"] == "LOG-FLOOD"]
    finally:
        process.stdout.close()
        end(process)
    if mode == "a":
        assert f"Process {process.pid}" in plan["refusal"] and path.exists()
    else:
        assert plan["refusal"] is None and path.stat().st_size < 100


PLANTED = Planted("LOG-FLOOD", flooded)
