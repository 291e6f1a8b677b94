"""DB-NOTADB: databases that SQLite refuses as a whole."""

from __future__ import annotations

import contextlib
import io
import os
import sqlite3
import zipfile
from pathlib import Path

import pytest

from hermes_doctor import plugins
from hermes_doctor.examination import examine
from hermes_doctor.home import Home
from hermes_doctor.model import CheckResult, Finding, Severity, Status
from hermes_doctor.probes import Probes
from tests import support

MAGIC = b"SQLite format 3\0"


def look(home: Path) -> tuple[CheckResult, list[Finding]]:
    """What this one check says about a home."""
    checks = [check for check in plugins.load().checks if check.id == "database-header"]
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
    """Another thing under the name is critical, named for what it is, and has no fix."""
    data, words = OTHERS[case]
    support.put(home / "state.db", data)
    assert refused(home / "state.db"), "the case itself is wrong"

    result, [finding] = look(home)

    assert result.status is Status.PROBLEM
    assert (finding.code, finding.severity) == ("DB-NOTADB", Severity.CRITICAL)
    assert finding.subject == "state.db"
    assert finding.evidence[0].what == f"it begins with {words}"
    assert finding.fix is None
    assert "Do not remove" in finding.detail


def test_only_the_magic(home: Path) -> None:
    """With only the 16 bytes damaged there is a fix, and the rows are promised."""
    support.clobber(home / "state.db")

    _, [finding] = look(home)

    assert finding.fix == "write-magic"
    assert "16 magic bytes" in finding.evidence[0].what
    assert "rows are all there" in finding.detail


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
    """Any other damage in the header takes the fix away: writing the magic would not be enough."""
    at, data = SPOILT[case]
    support.clobber(home / "state.db")
    support.clobber(home / "state.db", data, at)

    _, [finding] = look(home)

    assert finding.fix is None


@pytest.mark.parametrize("length", [17, 50, 99, 100, 511, 4096, 5000])
def test_truncated_without_magic(home: Path, length: int) -> None:
    """A file that also lost its end is reported without a fix."""
    support.clobber(home / "state.db")
    os.truncate(home / "state.db", length)

    _, [finding] = look(home)

    assert finding.code == "DB-NOTADB"
    assert finding.fix is None


@pytest.mark.parametrize("length", [16, 60, 99])
def test_magic_alone(home: Path, length: int) -> None:
    """A file that ends within its header is refused by SQLite, magic or not."""
    os.truncate(home / "state.db", length)
    support.clobber(home / "state.db", b"\0" * (length - 16), 16)
    assert refused(home / "state.db"), "the case itself is wrong"

    _, findings = look(home)

    assert [(f.code, f.fix) for f in findings] == [("DB-NOTADB", None)]


def test_nonsense_page_size(home: Path) -> None:
    """SQLite also refuses a file whose page size is nonsense, although the magic stands."""
    support.clobber(home / "state.db", b"\x00\x03", 16)
    assert refused(home / "state.db"), "the case itself is wrong"

    _, findings = look(home)

    assert [(f.code, f.fix) for f in findings] == [("DB-NOTADB", None)]


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


@pytest.mark.parametrize("kind", ["folder", "fifo", "dangling", "loop"])
def test_could_not_look(home: Path, kind: str) -> None:
    """What cannot be read is unknown, and the other databases are still looked at."""
    path = home / "state.db"
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("state.db" if kind == "loop" else "nowhere")

    result, findings = look(home)
    assert (result.status, findings) == (Status.UNKNOWN, [])
    assert "state.db" in (result.reason or "")

    support.clobber(home / "kanban.db")
    result, [finding] = look(home)
    assert (result.status, finding.subject) == (Status.PROBLEM, "kanban.db")
    assert "state.db" in (result.reason or "")
