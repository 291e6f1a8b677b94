"""Logs without an end and dumped requests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_doctor.core.model import Status
from hermes_doctor.diagnosis.probes import large_files
from tests.helpers import support
from tests.helpers.one_check import ask

M = 1024**2


def sparse(path: Path, size: int) -> Path:
    """A file of that size that takes no room."""
    support.put(path, "")
    os.truncate(path, size)
    return path


def test_healthy(home: Path) -> None:
    """Rotated logs and a few dumps are as they should be."""
    for name in ("agent.log", "agent.log.1", "gateway.log"):
        sparse(home / "logs" / name, 5 * M)
    sparse(home / "sessions" / "request_dump_1.json", 300 * 1024)
    result, findings = ask("piles", home)

    assert (result.status, findings) == (Status.OK, [])


@pytest.mark.parametrize(
    ("name", "size", "found"),
    [
        ("agent.log", 199 * M, False),
        ("agent.log", 201 * M, True),
        ("gateway-exit-diag.log", 19 * M, False),
        ("gateway-exit-diag.log", 21 * M, True),
        ("gateways/default/current", 300 * M, True),
    ],
)
def test_flood(home: Path, name: str, size: int, found: bool) -> None:
    """By what each of them may grow to."""
    sparse(home / "logs" / name, size)

    findings = ask("piles", home)[1]

    assert [(one.code, one.subject, one.fix) for one in findings] == (
        [("LOG-FLOOD", f"logs/{name}", "trim-logs")] if found else []
    )


def test_many_dumps(home: Path) -> None:
    """A thousand and one."""
    for number in range(1001):
        support.put(home / "sessions" / f"request_dump_{number}.json", "{}")

    [finding] = ask("piles", home)[1]

    assert (finding.code, finding.fix) == ("REQUEST-DUMPS", "trim-logs")


def test_heavy_dumps(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few and heavy; what is not weighed is reckoned."""
    monkeypatch.setattr(large_files, "WEIGHED", 2)
    for number in range(6):
        sparse(home / "sessions" / f"request_dump_{number}.json", 100 * M)

    [finding] = ask("piles", home)[1]

    assert finding.data["size"] == 600 * M


def test_links_do_not_count(home: Path) -> None:
    """A link to something large, a folder and a FIFO are no logs."""
    (home / "logs" / "link.log").symlink_to(sparse(home / "big", 900 * M))
    (home / "logs" / "folder.log").mkdir()
    os.mkfifo(home / "logs" / "fifo.log")

    assert ask("piles", home)[1] == []
