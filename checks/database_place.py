"""Find databases that the gateway cannot write or whose file system has unreliable locks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.api import (
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    Snapshot,
    check,
    snapshot,
    text,
)


@check(id="database-place", group="databases", codes=["DB-NETFS", "DB-OWNER"])
def database_place(probes: Probes) -> Iterator[Finding]:
    """Can the gateway write and lock its databases?"""
    if not probes.databases().paths:
        raise Skip("no database yet")
    yield from _remote(probes)
    user = probes.gateway_user()
    readable = set[Path]()
    for name, path, found in probes.conditions():
        readable.add(path)
        for suffix, taken in [("", found.files.main), *found.files.sidecars.items()]:
            what: str | None = None
            if taken.kind not in ("file", "symlink"):
                what = text("a {kind}, not a file", kind=taken.kind)
            elif not user.may_write(taken):
                what = _what(taken, user.uid)
            if what:
                place = found.files.path.with_name(found.files.path.name + suffix)
                yield _owner(name + suffix, place, what, taken, user.uid)
    for path in probes.databases().paths:  # those that we may not read either
        for suffix in () if path in readable else _SUFFIXES:
            place = path.with_name(path.name + suffix)
            taken = snapshot(place)
            if taken.kind == "file" and not user.may_write(taken):
                what = _what(taken, user.uid)
                yield _owner(probes.home.name_of(place), place, what, taken, user.uid)


_SUFFIXES = ("", "-wal", "-shm", "-journal")


def _what(taken: Snapshot, uid: int) -> str:
    """Whose file it is that this user may not write."""
    return text(
        "owner {owner}, mode {mode:04o}; the gateway runs as user {user}",
        owner=taken.uid,
        mode=taken.mode,
        user=uid,
    )


def _owner(file: str, place: Path, what: str, taken: Snapshot, uid: int) -> Finding:
    return Finding(
        code="DB-OWNER",
        severity=Severity.ERROR,
        title=text("the gateway cannot write {file}", file=file),
        subject=file,
        detail=(
            "Nothing new is saved in this database. Often a command that ran with sudo created the "
            "file."
            if taken.kind == "file"
            else "Nothing new is saved in this database."
        ),
        next="" if taken.kind == "file" else _next(taken.kind, uid),
        evidence=(Evidence(file, what),),
        fix="give-back-owner" if taken.kind == "file" else None,
        data={
            "path": place,
            "snapshot": taken,
            "uid": uid,
        },
    )


def _next(kind: str, uid: int) -> str:
    if kind == "symlink":
        return text("Make the file that the link names writable for user {user}.", user=uid)
    return "Move it to another place while the gateway is stopped."


def _remote(probes: Probes) -> Iterator[Finding]:
    """Yield one finding per file system with unreliable locks, not one per database."""
    seen: dict[str, list[str]] = {}
    kinds: dict[str, str] = {}
    for name, path, found in probes.conditions():
        mount = probes.mount(path.parent)
        if mount is not None and mount.is_unreliable:
            logs = found.header.head[18:20] == b"\x02\x02"
            seen.setdefault(str(mount.point), []).append(f"{name} (-wal)" if logs else name)
            kinds[str(mount.point)] = mount.kind
    for point, names in seen.items():
        yield Finding(
            code="DB-NETFS",
            severity=Severity.WARNING,
            title=text("databases are on a shared file system ({kind})", kind=kinds[point]),
            subject=point,
            detail=(
                "Locks may not work there, so databases can get damaged or fail with `locking "
                "protocol`."
            ),
            next="Move the home to a local disk.",
            evidence=tuple(Evidence(point, one) for one in names),
            data={"kind": kinds[point]},
        )
