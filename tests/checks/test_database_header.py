"""DB-NOTADB and DB-EMPTY: databases that SQLite refuses as a whole, or takes for new ones."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sqlite3
import struct
import zipfile
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CheckResult, Finding, Severity, Status
from hermes_doctor.diagnosis.examination.report import examine
from hermes_doctor.diagnosis.plugins import load
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.helpers import damage, one_check, support

MAGIC = b"SQLite format 3\0"


def look(home: Path) -> tuple[CheckResult, list[Finding]]:
    """What this one check says about a home."""
    checks = [check for check in load.load().checks if check.id == "database-header"]
    [result], findings = examine(Probes(Home(home)), checks)
    return result, findings


def refused(path: Path) -> bool:
    """Whether SQLite says that the file is not a database."""
    address = f"file:{path}?mode=ro&immutable=1"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as db:
        try:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.DatabaseError as error:
            return error.sqlite_errorname == "SQLITE_NOTADB"
    return False


def zipped() -> bytes:
    """A small archive."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("a", "b" * 300)
    return made.getvalue()


OTHERS = {
    "zeros": (b"\0" * 8192, "zeros"),
    "zip": (zipped(), "a zip archive"),
    "gzip": (b"\x1f\x8b\x08" + b"\x01" * 600, "a gzip file"),
    "text": (b"hello, I am not a database\n" * 40, "text"),
    "short text": (b"hello\n", "text"),
    "SQL dump": (b"BEGIN TRANSACTION;\n" * 40, "an SQL dump"),
    "git lfs": (b"version https://git-lfs.github.com/spec/v1\n" * 20, "a Git LFS pointer"),
    "TLS record": (b"\x17\x03\x03" + bytes(range(256)) * 3, "a TLS record"),
    "random": (bytes(range(200, 256)) * 20, "bytes of no known kind"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_something_else(home: Path, case: str) -> None:
    """Another thing under the name is critical, named for what it is; without a copy it is lost."""
    data, words = OTHERS[case]
    support.put(home / "state.db", data)
    assert refused(home / "state.db"), "the case itself is wrong"

    result, [finding] = look(home)

    assert result.status is Status.PROBLEM
    assert (finding.code, finding.severity) == ("DB-NOTADB", Severity.CRITICAL)
    assert finding.subject == "state.db"
    assert finding.evidence[0].what == f"it begins with {words}"
    assert finding.fix == "start-empty"
    assert "No copy was found" in finding.detail


def test_rows_behind_another_file(home: Path) -> None:
    """The start of the file was overwritten by much text, but the end still has rows."""
    path = damage.history(home / "state.db")
    half = path.stat().st_size * 9 // 10 // damage.PAGE * damage.PAGE
    damage.write(path, b"<!DOCTYPE html>\n" * (half // 16), 0)

    _, [finding] = look(home)

    assert finding.fix == "salvage-rows"


@pytest.mark.parametrize("state", ["sound", "damaged", "text", "empty"])
def test_another_file_and_copies(home: Path, state: str) -> None:
    """A sound copy is restored, a damaged one is salvaged, and what has no row is not a copy."""
    copy = damage.history(home / "state.db.bak")
    if state == "damaged":
        damage.zero(copy, 1)
    elif state == "text":
        support.put(copy, "text\n" * 4000)
    elif state == "empty":
        copy.unlink()
        support.made("state.db", copy).close()
    support.put(home / "state.db", b"<html>\n" * 2000)

    _, [finding] = look(home)

    fixes = {"sound": "restore-database", "damaged": "salvage-rows"}
    assert finding.fix == fixes.get(state, "start-empty")


def test_only_the_magic(home: Path) -> None:
    """With only the 16 bytes damaged there is a fix, and the rows are promised."""
    support.clobber(home / "state.db")

    _, [finding] = look(home)

    assert finding.fix == "write-magic"
    assert "first 16 bytes" in finding.evidence[0].what
    assert "Every row is still in the file." in finding.detail


@pytest.mark.parametrize("at", range(16))
def test_one_flipped_bit_of_the_magic(home: Path, at: int) -> None:
    """One flipped bit anywhere in the magic bytes is enough, and curable."""
    support.clobber(home / "state.db", bytes([MAGIC[at] ^ 1]), at)
    assert refused(home / "state.db")

    _, [finding] = look(home)

    assert finding.fix == "write-magic"


SPOILT = {
    "page size": (16, b"\x00\x03"),
    "format": (18, b"\x09\x09"),
    "fractions": (21, b"\x00\x00\x00"),
    "page count": (28, b"\x7f\xff\xff\xff"),
    "schema format": (44, b"\x00\x00\x00\x63"),
    "encoding": (56, b"\x00\x00\x00\x63"),
    "reserved zone": (72, b"garbage"),
    "kind of the first page": (100, b"\x42"),
}


@pytest.mark.parametrize("case", SPOILT)
def test_more_than_the_magic(home: Path, case: str) -> None:
    """Any other damage in the header asks for more: writing the magic would not be enough."""
    at, data = SPOILT[case]
    support.clobber(home / "state.db")
    support.clobber(home / "state.db", data, at)

    _, [finding] = look(home)

    lost = case == "kind of the first page"
    assert finding.fix == ("salvage-rows" if lost else "rewrite-header")


@pytest.mark.parametrize("length", [17, 50, 99, 100, 511, 4096, 5000])
def test_truncated_without_magic(home: Path, length: int) -> None:
    """A file that also lost its end needs more than its magic bytes."""
    support.clobber(home / "state.db")
    os.truncate(home / "state.db", length)

    _, [finding] = look(home)

    assert finding.code == "DB-NOTADB"
    assert finding.fix != "write-magic"


@pytest.mark.parametrize("length", [16, 60, 99])
def test_magic_alone(home: Path, length: int) -> None:
    """A file that ends within its header is refused by SQLite, magic or not."""
    os.truncate(home / "state.db", length)
    support.clobber(home / "state.db", b"\0" * (length - 16), 16)
    assert refused(home / "state.db"), "the case itself is wrong"

    _, findings = look(home)

    assert [(f.code, f.fix) for f in findings] == [("DB-NOTADB", "start-empty")]


def test_nonsense_page_size(home: Path) -> None:
    """SQLite also refuses a file whose page size is nonsense, although the magic stands."""
    support.clobber(home / "state.db", b"\x00\x03", 16)
    assert refused(home / "state.db"), "the case itself is wrong"

    _, findings = look(home)

    assert [(f.code, f.fix) for f in findings] == [("DB-NOTADB", "rewrite-header")]


def test_healthy(home: Path) -> None:
    """A database, an empty file (SQLite takes it for a new one) and other page sizes are fine."""
    (home / "response_store.db").touch()
    for size in (512, 65536):
        database = home / "kanban" / "boards" / f"b{size}" / "kanban.db"
        support.database(database, f"PRAGMA page_size={size}", "CREATE TABLE t (a)")

    result, findings = look(home)

    assert (result.status, findings) == (Status.OK, [])


def test_every_database(home: Path) -> None:
    """Every database of a home is looked at, boards of the kanban included; each is a finding."""
    names = ["cron/executions.db", "kanban/boards/team/kanban.db", "projects.db", "state.db"]
    for name in names:
        support.put(home / name, b"not a database, only text\n" * 30)

    _, findings = look(home)

    assert [finding.subject for finding in findings] == names


def test_no_database(home: Path) -> None:
    """A home without databases is skipped with the reason."""
    for path in home.glob("*.db"):
        path.unlink()

    result, findings = look(home)

    assert (result.status, findings) == (Status.SKIPPED, [])


NO_FILES = {
    "folder": "a folder",
    "fifo": "a named pipe",
    "loop": "a symlink that leads back to itself",
    "device": "a symlink to a device",
}


def put_other(path: Path, kind: str) -> None:
    """Something that is no file, in the place of a database."""
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to({"loop": "state.db", "device": "/dev/zero"}.get(kind, "nowhere"))


@pytest.mark.parametrize("kind", NO_FILES)
def test_no_file(home: Path, kind: str) -> None:
    """What is no file is named for what it is, and the other databases are still looked at."""
    put_other(home / "state.db", kind)
    support.clobber(home / "kanban.db")

    _, findings = look(home)

    assert [(f.code, f.subject) for f in findings] == [
        ("DB-NOTADB", "kanban.db"),
        ("DB-NOTADB", "state.db"),
    ]
    assert findings[1].evidence[0].what == NO_FILES[kind]
    assert (findings[1].severity, findings[1].fix) == (Severity.CRITICAL, None)


def test_could_not_look(home: Path) -> None:
    """What cannot be read is unknown, and the other databases are still looked at."""
    put_other(home / "state.db", "dangling")

    result, findings = look(home)
    assert (result.status, findings) == (Status.UNKNOWN, [])
    assert "state.db" in (result.reason or "")

    support.clobber(home / "kanban.db")
    result, [finding] = look(home)
    assert (result.status, finding.subject) == (Status.PROBLEM, "kanban.db")
    assert "state.db" in (result.reason or "")


# -- wrong fields, lost pages ----------------------------------------------------------------------

FIELDS = {
    "page size": (16, struct.pack(">H", 8192), {"page_size": 4096}),
    "no page size": (16, b"\x12\x34", {"page_size": 4096, "all": 1}),
    "reserved bytes": (20, b"\x20", {"reserved": 0}),
    "encoding": (56, struct.pack(">I", 2), {"encoding": 1}),
    "no encoding": (56, struct.pack(">I", 99), {"encoding": 1}),
    "fractions": (21, b"\0\0\0", {"fractions": 1}),
    "format": (18, b"\x09\x09", {"format": 2}),
    "all of it": (0, bytes(100), {"page_size": 4096, "all": 1}),
    "garbage": (0, bytes(range(100, 200)), {"page_size": 4096, "all": 1}),
}


@pytest.mark.parametrize("case", FIELDS)
def test_wrong_fields(home: Path, case: str) -> None:
    """The head contradicts the pages behind it: what it should say is known."""
    at, data, fields = FIELDS[case]
    damage.write(damage.history(home / "state.db"), data, at)

    _, [finding] = look(home)

    assert finding.code == "DB-NOTADB"
    assert (finding.fix, finding.data["fields"]) == ("rewrite-header", fields)
    assert one_check.codes(home) == ["DB-NOTADB"], "one cause is told once"


def test_wrong_page_count(home: Path) -> None:
    """A count that leaves pages out, and that SQLite believes."""
    path = damage.history(home / "state.db")
    head = path.read_bytes()[:100]
    pages = path.stat().st_size // damage.PAGE
    damage.write(path, struct.pack(">I", pages // 3), 28)
    damage.write(path, head[24:28], 92)

    _, [finding] = look(home)

    assert finding.data["fields"] == {"page_count": pages}
    assert one_check.codes(home) == ["DB-NOTADB"]


def test_lost_first_page(home: Path) -> None:
    """The whole first page is gone; the rows on the others can be read."""
    damage.zero(damage.history(home / "state.db"), 1)

    _, [finding] = look(home)

    assert finding.fix == "salvage-rows"
    assert one_check.codes(home) == ["DB-NOTADB"]


def test_first_page_in_the_log(home: Path) -> None:
    """A first page that the log still has is the one that counts, to SQLite too."""
    path = damage.history(home / "state.db")
    with damage.opened(path) as db:
        db.execute("PRAGMA wal_autocheckpoint=0")
        db.execute("CREATE TABLE more (a)")
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", home / f"kept{suffix}")
    for suffix in ("", "-wal"):
        shutil.move(home / f"kept{suffix}", f"{path}{suffix}")
    damage.write(path, b"\x17\x03\x03" + bytes(97), 0)

    _, findings = look(home)

    assert findings == []


@pytest.mark.sampled
@pytest.mark.parametrize("size", [1, 200, 20_000])
@pytest.mark.parametrize("grown", [False, True], ids=["rows", "with page 1"])
def test_another_file_beside_a_log(home: Path, size: int, grown: bool) -> None:
    """It is no truncated database, and the log has a part of the old one."""
    path = damage.history(home / "state.db")
    damage.with_log(path, index=False, then="CREATE TABLE more (a)" if grown else "")
    path.write_bytes(b"<!DOCTYPE html><html>404 Not Found</html>\n" * size)

    _, [finding] = look(home)

    assert (finding.code, finding.fix) == ("DB-NOTADB", "salvage-rows")
    assert "(-wal)" in finding.detail and "before the repair" in finding.next
    assert one_check.codes(home) == ["DB-NOTADB"]


@pytest.mark.parametrize("name", ["response_store.db", "cron/executions.db"])
def test_caches_are_set_aside(home: Path, name: str) -> None:
    """Nothing in them is worth more than a gateway that starts."""
    support.put(home / name, b"<!DOCTYPE html>\n<title>502 Bad Gateway</title>\n" * 90)

    _, [finding] = look(home)

    assert finding.fix == "set-aside-cache"


# -- empty -----------------------------------------------------------------------------------------


def _bare(path: Path) -> None:
    """A database without any table."""
    path.unlink()
    support.database(path, "CREATE TABLE t (a)", "DROP TABLE t")


TRACES = ("snapshot", "copy", "sessions")


@pytest.mark.parametrize(
    ("how", "trace"),
    [("no bytes", "log"), *((how, t) for how in ("no bytes", "no table") for t in TRACES)],
)
def test_emptied(home: Path, how: str, trace: str) -> None:
    """An empty database is a loss where something says that there was more."""
    path = damage.history(home / "state.db")
    if trace == "log":
        damage.with_log(path)
    if how == "no bytes":
        os.truncate(path, 0)
    else:
        _bare(path)
    if trace == "snapshot":
        support.put(home / "state-snapshots" / "one" / "state.db", b"x" * 9000)
    elif trace == "copy":
        support.put(home / "state.db.malformed-backup-20260101_000000", b"x" * 9000)
    elif trace == "sessions":
        support.put(home / "sessions" / "session_1.json", "{}")

    _, [finding] = look(home)

    assert (finding.code, finding.severity) == ("DB-EMPTY", Severity.CRITICAL)
    assert (finding.fix == "salvage-rows") is (trace == "log")


@pytest.mark.parametrize("how", ["no bytes", "no table"])
def test_new_ones_are_no_loss(home: Path, how: str) -> None:
    """Without any trace it is simply new."""
    (home / "kanban.db").unlink()
    if how == "no bytes":
        os.truncate(home / "state.db", 0)
    else:
        _bare(home / "state.db")

    result, findings = look(home)

    assert (result.status, findings) == (Status.OK, [])


@pytest.mark.parametrize("name", ["state.db", "kanban.db"])
@pytest.mark.parametrize("trace", ["logs/gateway.log", "sessions/sessions.json", "other"])
def test_zero_bytes_in_a_used_home(home: Path, name: str, trace: str) -> None:
    """Hermes has run here, so the file had tables; without such traces the home is new."""
    support.put(home / name, "")
    other = "kanban.db" if name == "state.db" else "state.db"
    (home / other).unlink(missing_ok=True)
    support.put(home / "sessions/sessions.json", "{}\n")
    assert [one.code for one in look(home)[1]] == []
    if trace == "other":
        damage.history(home / other)
    else:
        support.put(home / trace, '{"agent:main:telegram:dm:1": {"session_id": "x"}}')

    [found] = [one for one in look(home)[1] if one.subject == name]

    assert found.code == "DB-EMPTY"
    assert found.severity == ("critical" if name == "state.db" else "warning")
    assert found.fix == "start-empty"
