"""Find databases that the gateway cannot write or whose file system has unreliable locks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, Snapshot, check, text

if TYPE_CHECKING:
    from hermes_doctor.api import Condition


@check(id="database-place", group="databases", codes=["DB-NETFS", "DB-OWNER"])
def database_place(probes: Probes) -> Iterator[Finding]:
    """Do the databases lie where a gateway can write and lock them?"""
    if not probes.databases().paths:
        raise Skip("there is no database yet")
    yield from _remote(probes)
    user = probes.gateway_user()
    for name, _, found in probes.conditions():
        for suffix, taken in [("", found.files.main), *found.files.sidecars.items()]:
            what = None
            if taken.kind not in ("file", "symlink"):
                what = f"it is a {taken.kind}, which SQLite cannot use"
            elif not user.may_write(taken):
                what = f"owner {taken.uid}, mode {taken.mode:04o}; the gateway runs as {user.uid}"
            if what:
                yield _owner(name, suffix, what, found, taken, user.uid)


def _owner(
    name: str, suffix: str, what: str, found: Condition, taken: Snapshot, uid: int
) -> Finding:
    file = name + suffix
    return Finding(
        code="DB-OWNER",
        severity=Severity.ERROR,
        title=text("the gateway cannot write {file}", file=file),
        subject=file,
        detail=(
            "Hermes says `attempt to write a readonly database` or `unable to open database "
            "file`. A command run as another user, most often with sudo, leaves such files."
        ),
        evidence=(Evidence(file, what),),
        fix="give-back-owner" if taken.kind == "file" else None,
        data={
            "path": found.files.path.with_name(found.files.path.name + suffix),
            "snapshot": taken,
            "uid": uid,
        },
    )


def _remote(probes: Probes) -> Iterator[Finding]:
    """Yield one finding per file system with unreliable locks, not one per database."""
    seen: dict[str, list[str]] = {}
    kinds: dict[str, str] = {}
    for name, path, found in probes.conditions():
        mount = probes.mount(path.parent)
        if mount is not None and mount.is_unreliable:
            logs = found.header.head[18:20] == b"\x02\x02"
            seen.setdefault(str(mount.point), []).append(f"{name}{' with a log' if logs else ''}")
            kinds[str(mount.point)] = mount.kind
    for point, names in seen.items():
        yield Finding(
            code="DB-NETFS",
            severity=Severity.WARNING,
            title=text("databases lie on a shared file system ({kinds})", kinds=kinds[point]),
            subject=point,
            detail=(
                "SQLite's log needs memory that all processes share and locks that hold; here it "
                "may have neither. Hermes falls back to a slower mode, fails with `locking "
                "protocol`, or damages the database. Move the home to a local disk."
            ),
            evidence=tuple(Evidence(point, one) for one in names),
            data={"kind": kinds[point]},
        )
