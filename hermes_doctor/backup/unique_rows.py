"""Find rows that only one backup still has: the live database and all kept backups lack them."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hermes_doctor.backup import entry_content
from hermes_doctor.backup.entry import Entry
from hermes_doctor.backup.manifest import Backup
from hermes_doctor.backup.vault import BEGUN, PARTIAL, Vault
from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook, Trouble
from hermes_doctor.sqlite import inspector
from hermes_doctor.sqlite.reader import InProcess, Reader
from hermes_doctor.system import disk
from hermes_doctor.system.signals import uninterrupted

SECONDS = 60.0
"""Time limit for counting the rows of one database."""
LOG_HEAD = 32
"""A write-ahead log that is shorter holds nothing."""


class Counted(NamedTuple):
    """Which rows of a database are compared: how many there are of each group."""

    table: str
    group: str
    time: str
    """The newest time in a group, as SQL."""
    noun: str


COUNTED = {
    "state.db": Counted("messages", "session_id", "max(timestamp)", "message"),
    "kanban.db": Counted("tasks", "id", "0", "task"),
}
"""By the name of the file. Messages are counted by session: Hermes may number them again."""

Rows = Mapping[str, tuple[int, float]]
"""The number of rows of each group, and the time of the newest one."""


class LastRows:
    """Compare backups with the live databases and with the backups that are kept."""

    def __init__(self, vault: Vault, kept: Sequence[str]) -> None:
        self.vault = vault
        self.kept = [backup for id in reversed(kept) if (backup := self._loaded(id))]
        self._live: dict[str, Rows | str] = {}
        self._copies: dict[tuple[str | None, ...], Rows | str] = {}
        self._expired: float | None = None

    def reason_to_keep(self, backup: Backup) -> str | None:
        """Why this backup must not be pruned; None if all of its rows are also elsewhere."""
        for entry in backup.entries:
            counted = COUNTED.get(entry.path.rpartition("/")[2])
            if counted and entry.kind == "file" and (why := self._why(backup, entry, counted)):
                return why
        return None

    def compared(self, backup: Backup, names: Container[str]) -> Iterator[str]:
        """How the databases of a backup differ from the live ones, in sentences."""
        for entry in backup.entries:
            counted = COUNTED.get(entry.path.rpartition("/")[2])
            if not counted or entry.kind != "file" or entry.path not in names:
                continue
            name = entry.path
            mine = self._copied(backup, entry, counted)
            live = self._current(name, counted)
            if isinstance(mine, str):
                yield f"The {name} of backup {backup.id} cannot be compared: {mine}."
            elif isinstance(live, str):
                yield f"Backup {backup.id} cannot be compared with the current {name}: {live}."
            else:
                lacks = _more(mine, live, counted)
                new = _more(live, mine, counted)
                has = f"lacks {lacks} that" if lacks else f"has every {counted.noun} that"
                yield f"{name} {has} backup {backup.id} has."
                if new:
                    yield (
                        f"{name} has {new} that backup {backup.id} lacks: the restore takes them "
                        f"out of {name} and keeps them in the vault; `hermes-doctor undo` restores "
                        f"them."
                    )

    def keep(self, backup: Backup) -> None:
        """Count this backup as one of those that are kept."""
        self.kept.insert(0, backup)

    def _why(self, backup: Backup, entry: Entry, counted: Counted) -> str | None:
        name = entry.path
        others = [(one, same) for one in self.kept if (same := _same_name(one, name))]
        if any(_content(one, same) == _content(backup, entry) for one, same in others):
            return None
        mine = self._copied(backup, entry, counted)
        if isinstance(mine, str):
            return f"its {name} cannot be compared with the current one: {mine}"
        live = self._current(name, counted)
        missing = self._beyond(mine, {} if isinstance(live, str) else live)
        for one, same in others:
            if not missing:
                break
            there = self._copied(one, same, counted)
            missing = missing if isinstance(there, str) else self._beyond(missing, there)
        if not missing:
            return None
        total = 0
        for group, (number, _) in missing.items():
            total += number - (0 if isinstance(live, str) else live.get(group, (0, 0.0))[0])
        what = f"{total} {counted.noun}{'' if total == 1 else 's'}"
        if isinstance(live, str):
            return f"{live}, and no other backup has these {what}"
        return f"no other backup has {what} that {name} no longer has"

    def _beyond(self, rows: Rows, known: Rows) -> Rows:
        """The groups with more rows than are known, without those that Hermes itself deletes."""
        return {
            group: (number, newest)
            for group, (number, newest) in rows.items()
            if number > (there := known.get(group, (0, 0.0))[0])
            and (there or newest >= self._oldest_wanted())
        }

    def _oldest_wanted(self) -> float:
        """Hermes deletes sessions whose last message is older than this, if it is told to."""
        if self._expired is None:
            self._expired = expired_before(self.vault.home)
        return self._expired

    def _current(self, name: str, counted: Counted) -> Rows | str:
        """The rows of the live database, or why they cannot be counted."""
        if name not in self._live:
            self._live[name] = _live_rows(self.vault.home, name, counted)
        return self._live[name]

    def _copied(self, backup: Backup, entry: Entry, counted: Counted) -> Rows | str:
        """The rows of a copy in the vault, or why they cannot be counted."""
        key = _content(backup, entry)
        if key not in self._copies:
            try:
                with _readable(self.vault, backup, entry) as (place, how):
                    self._copies[key] = _rows(InProcess(place, how), counted, SECONDS)
            except (CouldNotLook, Trouble) as why:
                self._copies[key] = str(why).rstrip(".")
            except OSError:
                self._copies[key] = "the copy cannot be read"
        return self._copies[key]

    def _loaded(self, id: str) -> Backup | None:
        try:
            return self.vault.load(id)
        except Trouble:
            return None


def _more(rows: Rows, others: Rows, counted: Counted) -> str:
    """How many rows are in the first and not in the second; empty if none."""
    total = sum(
        max(0, number - others.get(group, (0, 0.0))[0]) for group, (number, _) in rows.items()
    )
    return f"{total} {counted.noun}{'s' * (total != 1)}" if total else ""


def _same_name(backup: Backup, name: str) -> Entry | None:
    entry = backup.entry(name)
    return entry if entry and entry.kind == "file" else None


def _content(backup: Backup, entry: Entry) -> tuple[str | None, ...]:
    """What a database in a backup consists of: two with the same content have the same rows."""
    beside = [backup.entry(entry.path + suffix) for suffix in ("-wal", "-journal")]
    return entry.sha256, *(one.sha256 if one else None for one in beside)


@contextmanager
def _readable(vault: Vault, backup: Backup, entry: Entry) -> Iterator[tuple[Path, str]]:
    """A path where SQLite can read the copy, and how; one that is kept in blocks is put together
    in a scratch folder of the vault."""
    journal = backup.entry(entry.path + "-journal")
    if journal and journal.kind == "file" and journal.size:
        raise CouldNotLook("an unfinished transaction is stored beside it")
    log = backup.entry(entry.path + "-wal")
    if log and (log.kind != "file" or log.size < LOG_HEAD):
        log = None
    how = inspector.LEFT if log else inspector.REST
    if not entry.blocks and not (log and log.blocks):
        yield backup.copy_of(entry), how
        return
    vault.room(entry.size + (log.size if log else 0))
    name = vault.next_id() + PARTIAL
    scratch = vault.root / name
    disk.make_folder(scratch)
    try:
        disk.save(scratch / BEGUN, str(vault.home.path).encode("utf-8", "surrogateescape"))
        for one, place in ((entry, scratch / "copy"), (log, scratch / "copy-wal")):
            if one:
                with disk.fresh(place, lasting=False) as fd:
                    entry_content.written(backup, one, fd)
        yield scratch / "copy", how
    finally:
        with uninterrupted(), contextlib.suppress(OSError):
            vault.discard(name)


def _live_rows(home: Home, name: str, counted: Counted) -> Rows | str:
    """The rows of a live database; nothing is locked or changed."""
    from hermes_doctor.processes import gateway_processes
    from hermes_doctor.sqlite import examine

    path = home.path / name

    def holders() -> list[int]:
        return gateway_processes.holders([path]).get(path, [])

    try:
        found = examine.examine(path, holders=holders, deep=False)
    except FileNotFoundError:
        return f"{name} is missing now"
    except (CouldNotLook, OSError):
        return f"{name} cannot be read now"
    if found.reader is None:
        empty = found.header.empty and not found.log.pages
        return {} if empty else f"{name} cannot be read now"
    with contextlib.closing(found.reader):
        if found.header.empty and not found.log.pages:
            return {}
        if not found.readable:
            return f"{name} cannot be read now"
        try:
            return _rows(found.reader, counted, SECONDS)
        except CouldNotLook as why:
            return f"the rows of {name} cannot be counted now ({why})"


def _rows(reader: Reader, counted: Counted, seconds: float) -> Rows:
    """Count; the table itself is read, since the index of a damaged database may be wrong."""
    table, group = counted.table, counted.group
    try:
        named = f"SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '{table}'"
        if _answered(reader, named, seconds) == 0:
            return {}
        sql = (
            "SELECT json_group_array(json_array(name, number, newest)) FROM ("
            f"SELECT quote({group}) AS name, count(*) AS number, {counted.time} AS newest "
            f"FROM {table} NOT INDEXED GROUP BY 1)"
        )
        rows: list[list[Any]] = json.loads(str(_answered(reader, sql, seconds)))
        return {str(name): (int(number), _number(newest)) for name, number, newest in rows}
    except ValueError:
        raise CouldNotLook("SQLite gave an unreadable answer") from None
    finally:
        reader.close()


def _answered(reader: Reader, sql: str, seconds: float) -> object:
    answer = reader.ask(sql, seconds)
    if answer.unfinished:
        raise CouldNotLook(f"counting its rows takes longer than {seconds:g} s")
    if answer.error or not answer.rows:
        raise CouldNotLook(f"SQLite cannot read it ({answer.error or 'no answer'})")
    value: object = answer.rows[0][0]
    return value


def _number(value: object) -> float:
    """A time of Hermes'; one that is not a number counts as new."""
    return float(value) if isinstance(value, int | float) else time.time()


def expired_before(home: Home) -> float:
    """The time before which `sessions.auto_prune` lets Hermes delete sessions; 0 if it is off."""
    from hermes_doctor.settings import config_file

    try:
        written = config_file.read(home)
    except (CouldNotLook, OSError):
        return 0.0
    block = ((written.values if written else None) or {}).get("sessions")
    if not isinstance(block, dict) or block.get("auto_prune") is not True:
        return 0.0
    days = block.get("retention_days", 90)
    return time.time() - days * 86400 if isinstance(days, int) and 0 < days < 36500 else 0.0
