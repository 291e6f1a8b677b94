"""Check that the disk of this home has enough free space and inodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    check,
    count,
    size,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Space

MEGABYTE = 1024**2
_MOST = 4
"""So many of the largest files are named."""


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
            next="Delete or move files that you do not need before you restart anything.",
            evidence=(Evidence(str(probes.home.path), what), *_largest(probes)),
            fix="free-space",
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
    """Yield the largest files that may go, and how much the backups of this tool take."""
    from hermes_doctor.api import backups_size

    try:
        found = [one for one in probes.removable_files() if one.freed > MEGABYTE]
        saved = backups_size(probes.home.vault)
    except CouldNotLook:
        return
    for one in found[:_MOST]:
        yield Evidence(probes.home.name_of(one.path), text("{size}, may go", size=size(one.size)))
    if len(found) > _MOST:
        rest = found[_MOST:]
        more = count(len(rest), "more file")
        freed = size(sum(one.freed for one in rest))
        yield Evidence("logs, dumps and caches", text("{more}: {freed}", more=more, freed=freed))
    if saved.size > MEGABYTE:
        yield Evidence(
            probes.home.name_of(probes.home.vault),
            text(
                "{backups}, {size}: hermes-doctor backup prune --keep 3",
                backups=count(saved.backups, "backup"),
                size=f"more than {size(saved.size)}" if saved.more else size(saved.size),
            ),
        )
