"""Damage a copy of a database as disks, crashes and mistakes do.

Each fault is a function of a `Patient`; a seed chooses the damaged places, so that every method
gets the same damage.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

PAGE = 4096
FRAME = PAGE + 24


@dataclass
class Patient:
    """A copy of a database to damage, with the layout of the intact one."""

    path: Path
    sound: Path
    """The intact database that it is a copy of, without a write-ahead log."""
    folder: Path
    """The folder of `live.db`, `stale.journal` and `kanban.db`."""
    chance: random.Random

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.path.stat().st_size

    @property
    def pages(self) -> int:
        """Number of pages."""
        return self.size // PAGE

    @property
    def wal(self) -> Path:
        """Path of its write-ahead log."""
        return self.path.with_name(self.path.name + "-wal")

    def write(self, at: int, data: bytes, path: Path | None = None) -> None:
        """Overwrite bytes in place."""
        with (path or self.path).open("r+b") as file:
            file.seek(at)
            file.write(data)

    def read(self, at: int, count: int, path: Path | None = None) -> bytes:
        """Return some bytes."""
        with (path or self.path).open("rb") as file:
            file.seek(at)
            return file.read(count)

    def zero(self, numbers: Iterable[int]) -> None:
        """Zero whole pages."""
        for number in numbers:
            self.write((number - 1) * PAGE, bytes(PAGE))

    def cut(self, length: int, path: Path | None = None) -> None:
        """Truncate the file."""
        with (path or self.path).open("r+b") as file:
            file.truncate(length)

    def map(self) -> dict[tuple[str, str], list[int]]:
        """Return the pages of each table and index by kind: leaf, internal, overflow."""
        cache = self.sound.with_name(self.sound.name + ".map")
        if not cache.exists():
            with contextlib.closing(sqlite3.connect(self.sound)) as database:
                rows = database.execute("SELECT name, pagetype, pageno FROM dbstat").fetchall()
            cache.write_text("\n".join("\t".join(map(str, row)) for row in rows))
        found: dict[tuple[str, str], list[int]] = defaultdict(list)
        for line in cache.read_text().splitlines():
            name, kind, number = line.split("\t")
            found[name, kind].append(int(number))
        return found

    def sql(self, *statements: str) -> None:
        """Change it through SQLite, schema included, and leave no write-ahead log."""
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as database:
            database.execute("PRAGMA writable_schema=ON")
            for statement in statements:
                database.execute(statement)
        database = sqlite3.connect(self.path, isolation_level=None)
        with contextlib.closing(database), contextlib.suppress(sqlite3.Error):
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for suffix in ("-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def go_live(self) -> int:
        """Become the database of a killed gateway, and return the frames in its write-ahead log."""
        shutil.copyfile(self.folder / "live.db", self.path)
        shutil.copyfile(self.folder / "live.db-wal", self.wal)
        return (self.wal.stat().st_size - 32) // FRAME


Fault = Callable[[Patient], None]


def _sample(patient: Patient, numbers: list[int], count: int) -> list[int]:
    return patient.chance.sample(numbers, min(count, len(numbers)))


def _zero_random(count: int) -> Fault:
    def fault(patient: Patient) -> None:
        patient.zero(_sample(patient, list(range(2, patient.pages + 1)), count))

    return fault


def _zero_pages(count: int, *places: tuple[str, str]) -> Fault:
    def fault(patient: Patient) -> None:
        pages = patient.map()
        for place in places:
            patient.zero(_sample(patient, sorted(pages[place]), count))

    return fault


def _zero_root(table: str) -> Fault:
    def fault(patient: Patient) -> None:
        with contextlib.closing(sqlite3.connect(patient.sound)) as database:
            patient.zero(
                database.execute(
                    "SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)
                ).fetchone()
            )

    return fault


def _flip(count: int) -> Fault:
    def fault(patient: Patient) -> None:
        for _ in range(count):
            at = patient.chance.randrange(PAGE, patient.size)
            (byte,) = patient.read(at, 1)
            patient.write(at, bytes([byte ^ 1 << patient.chance.randrange(8)]))

    return fault


def misdirected(patient: Patient) -> None:
    """Overwrite leaf pages of messages with copies of other leaf pages of messages."""
    leaves = sorted(patient.map()["messages", "leaf"])
    some = _sample(patient, leaves, min(40, len(leaves) // 4))
    half = len(some) // 2
    for source, place in zip(some[:half], some[half:], strict=False):
        patient.write((place - 1) * PAGE, patient.read((source - 1) * PAGE, PAGE))


def _cut(tenths: int, extra: int = 0) -> Fault:
    return lambda patient: patient.cut(patient.pages * tenths // 10 * PAGE + extra)


def log_lost(patient: Patient) -> None:
    """Delete the write-ahead log of a killed gateway."""
    patient.go_live()
    patient.wal.unlink()


def log_torn(patient: Patient) -> None:
    """Write half of the log's pages to the file, in random order, and delete the log."""
    newest = {}
    for frame in range(patient.go_live()):
        at = 32 + frame * FRAME
        newest[struct.unpack(">I", patient.read(at, 4, patient.wal))[0]] = at + 24
    for number in patient.chance.sample(sorted(newest), len(newest) // 2):
        patient.write((number - 1) * PAGE, patient.read(newest[number], PAGE, patient.wal))
    patient.wal.unlink()


def log_middle(patient: Patient) -> None:
    """Damage one frame of the write-ahead log."""
    frames = patient.go_live()
    patient.write(32 + frames // 3 * FRAME + 1024, patient.chance.randbytes(64), patient.wal)


def log_head(patient: Patient) -> None:
    """Damage the header of the write-ahead log."""
    patient.go_live()
    patient.write(0, patient.chance.randbytes(32), patient.wal)


def log_many(patient: Patient) -> None:
    """Damage the write-ahead log in twenty places."""
    patient.go_live()
    length = patient.wal.stat().st_size
    for _ in range(20):
        at = patient.chance.randrange(32, length - 64)
        patient.write(at, patient.chance.randbytes(16), patient.wal)


def log_cut(patient: Patient) -> None:
    """Truncate the write-ahead log in the middle of a frame."""
    patient.cut(32 + patient.go_live() // 2 * FRAME + 500, patient.wal)


def trunk_garbage(patient: Patient) -> None:
    """Fill the first page of the freelist with random page numbers."""
    trunk = struct.unpack(">I", patient.read(32, 4))[0]
    if trunk:
        pages = [patient.chance.randrange(2, patient.pages) for _ in range(900)]
        patient.write((trunk - 1) * PAGE, struct.pack(">902I", 5, 900, *pages))


def chains_cut(patient: Patient) -> None:
    """Let overflow pages of messages point to invalid pages."""
    for number in _sample(patient, sorted(patient.map()["messages", "overflow"]), 50):
        wrong = patient.chance.choice([0, 0x7FFFFFFF, 3])
        patient.write((number - 1) * PAGE, struct.pack(">I", wrong))


def index_entries_gone(patient: Patient) -> None:
    """Remove every seventh row from an index."""
    name = "idx_messages_session"
    true = f"CREATE INDEX {name} ON messages(session_id, timestamp)"
    change = "UPDATE sqlite_master SET sql = '{}' WHERE name = '" + name + "'"
    patient.sql(change.format(true + " WHERE id % 7 <> 0"))
    patient.sql(f"REINDEX {name}", change.format(true))


def journal_stale(patient: Patient) -> None:
    """Add a rollback journal from an earlier version of the file."""
    shutil.copyfile(
        patient.folder / "stale.journal", patient.path.with_name(patient.path.name + "-journal")
    )


def overwritten_by_log(patient: Patient) -> None:
    """Overwrite the last fifth with lines of a log file."""
    length = patient.pages // 5 * PAGE
    line = b"2026-01-01 00:00:00 INFO gateway: heartbeat ok\n"
    patient.write(patient.size - length, (line * (length // len(line) + 1))[:length])


def overwritten_by_board(patient: Patient) -> None:
    """Overwrite the end with pages of another SQLite database."""
    board = (patient.folder / "kanban.db").read_bytes()
    patient.write(patient.size - len(board), board)


def wrong_count(patient: Patient) -> None:
    """Let the header claim only a third of the pages."""
    patient.write(28, struct.pack(">I", patient.pages // 3))
    patient.write(92, patient.read(24, 4))


def _root_of(table: str, other: str) -> str:
    return (
        f"UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master "
        f"WHERE name = '{other}') WHERE name = '{table}'"
    )


def _sql(*statements: str) -> Fault:
    return lambda patient: patient.sql(*statements)


def _bytes(at: int, data: bytes) -> Fault:
    return lambda patient: patient.write(at, data)


FAULTS: dict[str, Fault] = {
    "magic overwritten": lambda p: p.write(0, b"\x17\x03\x03\x00\x45" + p.chance.randbytes(11)),
    "header zeroed": _bytes(0, bytes(100)),
    "page 1 zeroed": _bytes(0, bytes(PAGE)),
    "1 page zeroed": _zero_random(1),
    "10 pages zeroed": _zero_random(10),
    "100 pages zeroed": _zero_random(100),
    "1000 pages zeroed": _zero_random(1000),
    "10 leaves of messages zeroed": _zero_pages(10, ("messages", "leaf")),
    "root of messages zeroed": _zero_root("messages"),
    "all interior pages of messages zeroed": _zero_pages(10**6, ("messages", "internal")),
    "root of sessions zeroed": _zero_root("sessions"),
    "50 bits flipped": _flip(50),
    "500 bits flipped": _flip(500),
    "20 leaves misdirected": misdirected,
    "cut to 50 %": _cut(5),
    "cut to 90 %": _cut(9),
    "cut inside a page": _cut(9, 1234),
    "log lost": log_lost,
    "checkpoint torn, log lost": log_torn,
    "log damaged in the middle": log_middle,
    "log head damaged": log_head,
    "log damaged in 20 places": log_many,
    "log cut to half": log_cut,
    "freelist pointer wrong": _bytes(32, struct.pack(">I", 0x00ABCDEF)),
    "freelist page overwritten": trunk_garbage,
    "50 overflow chains cut": chains_cut,
    "50 overflow pages zeroed": _zero_pages(50, ("messages", "overflow")),
    "index pages zeroed": _zero_pages(
        4,
        ("idx_messages_session", "leaf"),
        ("idx_sessions_source", "leaf"),
        ("sqlite_autoindex_sessions_1", "leaf"),
    ),
    "index lacks entries": index_entries_gone,
    "full text: data zeroed": _zero_pages(20, ("messages_fts_data", "leaf")),
    "full text: structure overwritten": _sql(
        "UPDATE messages_fts_data SET block = x'00000000ffff' WHERE id = 10"
    ),
    "full text: copies zeroed": _zero_pages(20, ("messages_fts_content", "leaf")),
    "full text: term index zeroed": _zero_pages(
        10**6, ("messages_fts_idx", "internal"), ("messages_fts_idx", "leaf")
    ),
    "full text: rows missing": _sql("DELETE FROM messages_fts WHERE rowid % 50 = 0"),
    "schema: duplicate row": _sql(
        "INSERT INTO sqlite_master SELECT type, name, tbl_name, rootpage, sql "
        "FROM sqlite_master WHERE name = 'messages_fts'"
    ),
    "schema: root of an index": _sql(_root_of("messages", "sqlite_autoindex_sessions_1")),
    "schema: broken declaration": _sql(
        "UPDATE sqlite_master SET sql = replace(sql, 'CREATE TABLE', 'CREATE TXBLE') "
        "WHERE name = 'sessions'"
    ),
    "schema: row deleted": _sql("DELETE FROM sqlite_master WHERE name = 'messages'"),
    "schema: root of another table": _sql(_root_of("messages", "messages_fts_content")),
    "page size doubled": _bytes(16, struct.pack(">H", 8192)),
    "page size invalid": _bytes(16, struct.pack(">H", 0x1234)),
    "reserved bytes wrong": _bytes(20, b"\x20"),
    "encoding wrong": _bytes(56, struct.pack(">I", 2)),
    "page count wrong": wrong_count,
    "stale journal": journal_stale,
    "end overwritten by a log": overwritten_by_log,
    "end overwritten by a board": overwritten_by_board,
    "broken JSON": _sql(
        "UPDATE messages SET tool_calls = substr(tool_calls, 1, length(tool_calls) / 2) "
        "WHERE tool_calls IS NOT NULL AND id % 40 = 0",
        "UPDATE sessions SET model_config = '{broken' WHERE rowid % 50 = 0",
    ),
}
"""The classes of damage that leave something to save."""
LIVE = frozenset(
    {
        "log lost",
        "checkpoint torn, log lost",
        "log damaged in the middle",
        "log head damaged",
        "log damaged in 20 places",
        "log cut to half",
    }
)
"""Those to compare with the live database and its write-ahead log."""


def damage(name: str, sound: Path, target: Path, seed: int = 7) -> Path:
    """Return a copy of `sound` with this fault."""
    for suffix in ("-wal", "-shm", "-journal"):
        target.with_name(target.name + suffix).unlink(missing_ok=True)
    shutil.copyfile(sound, target)
    chance = random.Random(f"{seed} {name}")
    FAULTS[name](Patient(target, sound, sound.parent, chance))
    return target
