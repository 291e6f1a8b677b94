"""Check that the disk of this home has enough free space and inodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, check, size, text

if TYPE_CHECKING:
    from hermes_doctor.api import Space

MEGABYTE = 1024**2


@check(id="disk-space", group="storage", codes=["DISK-FULL"])
def disk_space(probes: Probes) -> Iterator[Finding]:
    """Does the disk of this home have free space?"""
    room = probes.space()
    for severity, what in (_bytes(room), _inodes(room)):
        if severity is None:
            continue
        now = severity is Severity.CRITICAL
        yield Finding(
            code="DISK-FULL",
            severity=severity,
            title="the disk of this home is full"
            if now
            else "the disk of this home is almost full",
            subject="disk" if what.endswith("free") else "inodes",
            detail=(
                "The bot cannot save messages and sessions, so they are lost."
                if now
                else "When it is full, messages are lost and databases can be damaged."
            ),
            next="Delete or move files that you do not need.",
            evidence=(Evidence(str(probes.home.path), what), *_largest(probes)),
            data={"free": room.free, "inodes_free": room.inodes_free},
        )


def _bytes(room: Space) -> tuple[Severity | None, str]:
    what = text("{free} of {total} free", free=size(room.free), total=size(room.total))
    if room.free < 16 * MEGABYTE:
        return Severity.CRITICAL, what
    if room.free < 128 * MEGABYTE:
        return Severity.ERROR, what
    scarce = room.free < room.total * 0.03 and room.free < 4096 * MEGABYTE
    if scarce or room.free < 512 * MEGABYTE:
        return Severity.WARNING, what
    return None, what


def _inodes(room: Space) -> tuple[Severity | None, str]:
    what = text(
        "{free:,} of {total:,} inodes (places for files) left",
        free=room.inodes_free,
        total=room.inodes,
    )
    if room.inodes == 0:
        return None, what
    if room.inodes_free < 16:
        return Severity.CRITICAL, what
    if room.inodes_free < 1000:
        return Severity.ERROR, what
    if room.inodes_free < room.inodes * 0.03 and room.inodes_free < 50_000:
        return Severity.WARNING, what
    return None, what


def _largest(probes: Probes) -> Iterator[Evidence]:
    """Yield the total sizes of logs and request dumps if they are large."""
    try:
        logs, dumps = probes.logs(), probes.dumps()
    except CouldNotLook:
        return
    total = sum(one.size for one in logs)
    if total > 64 * MEGABYTE:
        yield Evidence("logs", size(total))
    if dumps.size > 64 * MEGABYTE:
        yield Evidence("sessions/request_dump_*", size(dumps.size))
