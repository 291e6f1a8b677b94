"""Check the space on the disk and what takes it."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.stores import Space
from hermes_doctor.api.tools import clock, count, size

MEGABYTE = 1024**2
FLOOD = 200 * MEGABYTE
UNROTATED = 20 * MEGABYTE
_UNROTATED = (
    "gateway-exit-diag.log",
    "gateway-shutdown-diag.log",
    "gateway-shutdown-watchdog.log",
)
"""Hermes never rotates these."""
MANY, HEAVY = 1000, 500 * MEGABYTE


@check(id="piles", group="storage", codes=["LOG-FLOOD", "REQUEST-DUMPS"])
def piles(probes: Probes) -> Iterator[Finding]:
    """Are logs and request dumps of a normal size?"""
    for log in probes.files.log_files():
        limit = UNROTATED if log.path.name in _UNROTATED else FLOOD
        if log.size > limit:
            name = probes.home.name_of(log.path)
            yield Finding(
                code="LOG-FLOOD",
                severity=Severity.WARNING,
                title=text("{name} grew to {size}", name=name, size=size(log.size)),
                subject=name,
                detail=(
                    "It fills the disk: Hermes never shortens this file."
                    if log.path.name in _UNROTATED
                    else "It fills the disk. Its last lines show what writes to it again and again."
                ),
                evidence=(Evidence(name, f"last written {clock(log.modified)}"),),
                fix="trim-logs",
                data={"path": log.path, "size": log.size},
            )
    dumps = probes.files.dumps()
    if dumps.number > MANY or dumps.size > HEAVY:
        yield Finding(
            code="REQUEST-DUMPS",
            severity=Severity.WARNING,
            title=(
                text(
                    "more than {dumps} take {size}",
                    dumps=count(dumps.number, "request dump"),
                    size=size(dumps.size),
                )
                if dumps.more
                else text(
                    "{dumps} take {size}",
                    dumps=count(dumps.number, "request dump"),
                    size=size(dumps.size),
                )
            ),
            subject="sessions",
            detail=(
                "Hermes writes one with the whole conversation each time a model provider fails, "
                "and never deletes any."
            ),
            evidence=(Evidence("sessions/request_dump_*.json", count(dumps.number, "file")),),
            since=None,
            fix="trim-logs",
            data={"number": dumps.number, "size": dumps.size},
            next="Look in logs/errors.log why the provider fails.",
        )


_MOST = 4
"""So many of the largest files are named."""


@check(id="disk-space", group="storage", codes=["DISK-FULL"])
def disk_space(probes: Probes) -> Iterator[Finding]:
    """Does the disk of this home have free space?"""
    room = probes.machine.space()
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
    from hermes_doctor.api.stores import backups_size

    try:
        removable_files = [
            removable_file
            for removable_file in probes.files.removable_files()
            if removable_file.freed > MEGABYTE
        ]
        saved = backups_size(probes.home.vault)
    except CouldNotLook:
        return
    for file in removable_files[:_MOST]:
        yield Evidence(probes.home.name_of(file.path), text("{size}, may go", size=size(file.size)))
    if len(removable_files) > _MOST:
        rest = removable_files[_MOST:]
        more = count(len(rest), "more file")
        freed = size(sum(kept_file.freed for kept_file in rest))
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


@check(id="database-size", group="databases", codes=["DB-BLOAT", "DB-BACKUP-CLUTTER"])
def database_size(probes: Probes) -> Iterator[Finding]:
    """Do the databases use little more space than their data?"""
    if not probes.databases.files().paths:
        raise Skip("no database yet")
    for name, _, condition in probes.databases.conditions():
        if condition.free is None or condition.free.fault or not condition.page_size:
            continue
        pages = condition.log.db_pages or condition.files.main.size // condition.page_size
        free = condition.free.pages * condition.page_size
        if condition.free.pages * 2 > pages and free >= 64 * MEGABYTE:
            yield Finding(
                code="DB-BLOAT",
                severity=Severity.WARNING if free >= 512 * MEGABYTE else Severity.INFO,
                title=text("more than half of {name} is unused space", name=name),
                subject=name,
                detail=(
                    "Backups become larger than needed, and Hermes leaves files above 1 GB out of "
                    "its snapshots."
                ),
                evidence=(
                    Evidence(
                        name,
                        text(
                            "{free} of {total} unused",
                            free=size(free),
                            total=size(pages * condition.page_size),
                        ),
                    ),
                ),
                fix="compact-database",
                data={"free": free},
            )
    yield from _clutter(probes)


def _clutter(probes: Probes) -> Iterator[Finding]:
    looked = {name: found for name, _, found in probes.databases.conditions()}
    damaged = {name for name, found in looked.items() if found.damage}
    sound = {name for name, found in looked.items() if not found.wrong and not found.header.empty}
    for path in probes.databases.files().paths:
        left = probes.databases.leftovers(path)
        whole = [copy for copy in left if not copy.path.name.endswith(("-wal", "-shm"))]
        total = sum(database_copy.size for database_copy in left)
        many = total >= 1024 * MEGABYTE
        if len(whole) < 3 and not (many and len(whole) > 1):
            continue
        name = probes.home.name_of(path)
        newest = max(whole, key=lambda one: (one.mtime_ns, one.path.name)).path.name
        cause = "KANBAN-CORRUPT" if path.name == "kanban.db" else "DB-MALFORMED"
        yield Finding(
            code="DB-BACKUP-CLUTTER",
            severity=Severity.WARNING if many else Severity.INFO,
            title=text(
                "{copies} of a damaged {name} use {size}",
                copies=count(len(whole), "copy", "copies"),
                name=name,
                size=size(total),
            ),
            subject=name,
            detail="Hermes copies the whole database when it finds damage, and keeps all copies.",
            next=(
                ""
                if name in sound
                else text(
                    "Repair {name} before you move the copies: they may have rows that it lacks.",
                    name=name,
                )
            ),
            evidence=tuple(
                Evidence(probes.home.name_of(one.path), size(one.size)) for one in whole[:3]
            ),
            caused_by=cause if name in damaged else None,
            fix="set-aside-copies" if name in sound else None,
            data={
                "paths": tuple(one.path for one in left),
                "older": tuple(one.path for one in left if not one.path.name.startswith(newest)),
            },
        )
