"""Find databases with much free space, and many copies of a damaged database."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, count, size, text

MEGABYTE = 1024**2


@check(id="database-size", group="databases", codes=["DB-BLOAT", "DB-BACKUP-CLUTTER"])
def database_size(probes: Probes) -> Iterator[Finding]:
    """Do the databases use little more space than their data?"""
    if not probes.databases().paths:
        raise Skip("no database yet")
    for name, _, found in probes.conditions():
        if found.free is None or found.free.fault or not found.page_size:
            continue
        pages = found.log.db_pages or found.files.main.size // found.page_size
        free = found.free.pages * found.page_size
        if found.free.pages * 2 > pages and free >= 64 * MEGABYTE:
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
                            total=size(pages * found.page_size),
                        ),
                    ),
                ),
                fix="compact-database",
                data={"free": free},
            )
    yield from _clutter(probes)


def _clutter(probes: Probes) -> Iterator[Finding]:
    looked = {name: found for name, _, found in probes.conditions()}
    damaged = {name for name, found in looked.items() if found.damage}
    sound = {name for name, found in looked.items() if not found.wrong and not found.header.empty}
    for path in probes.databases().paths:
        left = probes.leftovers(path)
        whole = [one for one in left if not one.path.name.endswith(("-wal", "-shm"))]
        total = sum(one.size for one in left)
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
