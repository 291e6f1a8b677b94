"""Space and inodes of the disk that a home lies on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_doctor.core.model import Severity, Status
from hermes_doctor.core.system import mounts
from hermes_doctor.core.system.mounts import Space
from tests.helpers.one_check import ask

M, G = 1024**2, 1024**3


@pytest.mark.parametrize(
    ("room", "severities"),
    [
        (Space(100 * G, 50 * G, 1000_000, 900_000, False), []),
        (Space(4000 * G, 100 * G, 0, 0, False), []),
        (Space(2 * G, 600 * M, 1000_000, 900_000, False), []),
        (Space(100 * G, 2 * G, 1000_000, 900_000, False), [Severity.WARNING]),
        (Space(2 * G, 300 * M, 1000_000, 900_000, False), [Severity.WARNING]),
        (Space(100 * G, 100 * M, 1000_000, 900_000, False), [Severity.ERROR]),
        (Space(100 * G, 0, 1000_000, 900_000, False), [Severity.CRITICAL]),
        (Space(100 * G, 50 * G, 1000_000, 20_000, False), [Severity.WARNING]),
        (Space(100 * G, 50 * G, 1000_000, 900, False), [Severity.ERROR]),
        (Space(100 * G, 50 * G, 1000_000, 0, False), [Severity.CRITICAL]),
        (Space(100 * G, 0, 1000_000, 0, False), [Severity.CRITICAL, Severity.CRITICAL]),
    ],
)
def test_room(
    home: Path, room: Space, severities: list[Severity], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From plenty to none at all, by bytes and by inodes."""
    monkeypatch.setattr(mounts, "free_space", lambda *_, **__: room)

    result, findings = ask("disk-space", home)

    assert [finding.severity for finding in findings] == severities
    assert {finding.code for finding in findings} <= {"DISK-FULL"}
    assert (result.status is Status.OK) == (not severities)
    assert len({finding.subject for finding in findings}) == len(findings)


OTHERS = 2**30
"""What other tests may have written between two looks."""


def test_this_disk(home: Path) -> None:
    """The kernel's own numbers; what is reserved for root does not count as free."""
    room = mounts.free_space(home)
    told = os.statvfs(home)

    assert 0 < room.free <= room.total
    assert abs(room.free - told.f_bavail * told.f_frsize) < OTHERS
    assert not mounts.is_full(room)


def test_blocks_reserved_for_root(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and inodes that only root may use do not count as free."""
    values = list(os.statvfs(home))
    values[1:8] = [4096, 1000_000, 900_000, 7, 1000_000, 900_000, 8]
    disk = os.statvfs_result(values)
    assert (disk.f_frsize, disk.f_bfree, disk.f_bavail) == (4096, 900_000, 7)
    monkeypatch.setattr(os, "statvfs", lambda _: disk)

    room = mounts.free_space(home)
    _, findings = ask("disk-space", home)

    assert (room.free, room.inodes_free) == (7 * 4096, 8)
    assert [finding.severity for finding in findings] == [Severity.CRITICAL] * 2
