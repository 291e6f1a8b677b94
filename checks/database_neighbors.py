"""Check what is around the databases: the SQLite library, the file system, logs set aside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, snapshot, text
from hermes_doctor.api.database import (
    DANGLING_CONVERSATIONS,
    UNREADABLE_RESPONSES,
    set_aside_logs,
)
from hermes_doctor.api.tools import Snapshot, count, listed, size


@check(id="sqlite-library", group="databases", codes=["DB-SQLITE-WALRESET"], needs="gateway")
def sqlite_library(probes: Probes) -> Iterator[Finding]:
    """Is the gateway's SQLite safe for databases in WAL mode?"""
    library = probes.gateway.sqlite_library()
    if library is None or not library.risky:
        return
    version = ".".join(map(str, library.version))
    crowded = {
        name: holders
        for name, path, _ in probes.databases.conditions()
        if len(holders := probes.databases.users().holders(path)) > 1
    }
    yield Finding(
        code="DB-SQLITE-WALRESET",
        severity=Severity.WARNING if crowded else Severity.INFO,
        title=text("SQLite {version} of the gateway can damage databases", version=version),
        subject="sqlite",
        detail=(
            "A rare bug: two processes that write at the same moment can damage a database. "
            "Several processes have one open now."
            if crowded
            else "A rare bug needs two processes that write at the same moment. Only the gateway "
            "has the databases open."
        ),
        evidence=(
            Evidence(str(library.path), f"SQLite {version}, loaded by process {library.pid}"),
            *(
                Evidence(
                    name,
                    text("open in processes {numbers}", numbers=listed([*map(str, holders)])),
                )
                for name, holders in sorted(crowded.items())
            ),
        ),
        next=(
            "Stop the processes that you do not need, and update SQLite to 3.51.3 or newer."
            if crowded
            else "Update SQLite to 3.51.3, 3.50.7 or 3.44.6 when you next update the machine."
        ),
        data={"version": library.version},
    )


@check(id="database-place", group="databases", codes=["DB-NETFS", "DB-OWNER"])
def database_place(probes: Probes) -> Iterator[Finding]:
    """Can the gateway write and lock its databases?"""
    if not probes.databases.files().paths:
        raise Skip("no database yet")
    yield from _remote(probes)
    user = probes.gateway.user()
    readable = set[Path]()
    for name, path, condition in probes.databases.conditions():
        readable.add(path)
        for suffix, taken in [("", condition.files.main), *condition.files.sidecars.items()]:
            what: str | None = None
            if taken.kind not in ("file", "symlink"):
                what = text("a {kind}, not a file", kind=taken.kind)
            elif not user.may_write(taken):
                what = _what(taken, user.uid)
            if what:
                place = condition.files.path.with_name(condition.files.path.name + suffix)
                yield _owner(name + suffix, place, what, taken, user.uid)
    for path in probes.databases.files().paths:  # those that we may not read either
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
    for name, path, condition in probes.databases.conditions():
        mount = probes.machine.mount(path.parent)
        if mount is not None and mount.is_unreliable:
            logs = condition.header.head[18:20] == b"\x02\x02"
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


@check(id="database-aside", group="databases", codes=["DB-WAL-ROWS"])
def database_aside(probes: Probes) -> Iterator[Finding]:
    """Does state.db have all rows of old -wal files?"""
    path = probes.home / "state.db"
    logs = set_aside_logs(path)
    if not logs:
        raise Skip("no write-ahead log (-wal) was set aside")
    for log in logs:
        yield Finding(
            code="DB-WAL-ROWS",
            severity=Severity.INFO,
            title="an old -wal file may have rows that state.db lacks",
            subject=log.name,
            detail=(
                "This write-ahead log (-wal) was set aside, so Hermes does not read it. The repair "
                "adds messages and sessions that only it has."
            ),
            evidence=(Evidence(log.name, size(snapshot(log).size)),),
            fix="add-log-rows",
            data={"database": "state.db"},
        )


_BAD = f"SELECT count(*) FROM responses WHERE {UNREADABLE_RESPONSES}"
_DANGLING = f"SELECT count(*) FROM conversations WHERE {DANGLING_CONVERSATIONS}"


@check(
    id="response-store",
    group="databases",
    codes=["RESPSTORE"],
    by_release=True,
    needs="response_store.db",
)
def response_store(probes: Probes) -> Iterator[Finding]:
    """Can the API server read all answers in its cache?"""
    path = probes.home / "response_store.db"
    try:
        condition = probes.databases.condition(path)
    except FileNotFoundError:
        raise Skip("response_store.db was removed during the check") from None
    if condition.damage or not condition.readable or not condition.catalog:
        raise Skip("response_store.db cannot be read; another check reports it")
    counts = {}
    for what, sql in (("bad", _BAD), ("dangling", _DANGLING)):
        answer = probes.databases.query(path, sql)
        counts[what] = answer.rows[0][0] if answer.rows else 0
    evidence = []
    if counts["bad"]:
        what = f"responses: {count(counts['bad'], 'row')} without valid JSON"
        evidence.append(Evidence("response_store.db", what))
    if counts["dangling"]:
        what = f"conversations: {count(counts['dangling'], 'row')} whose answer is missing"
        evidence.append(Evidence("response_store.db", what))
    if evidence:
        yield Finding(
            code="RESPSTORE",
            severity=Severity.WARNING,
            title="the API server has saved answers that it cannot read",
            subject="response_store.db",
            detail=(
                "API requests that continue these conversations fail. The file is a cache; "
                "removing the damaged rows loses nothing that still works."
            ),
            evidence=tuple(evidence),
            fix="evict-responses",
            data=counts,
        )
