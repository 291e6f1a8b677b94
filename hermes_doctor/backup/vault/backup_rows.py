"""Compare the rows of backups with those of the live databases and of other backups.

So pruning keeps the last backup with rows that exist nowhere else, and a restore says before which
rows it will remove.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path

from hermes_doctor.backup.vault import restore_files, row_comparison
from hermes_doctor.backup.vault.manifest import Backup, BackupEntry
from hermes_doctor.backup.vault.row_comparison import (
    COMPARED_ROWS,
    ComparedRows,
    Contents,
    Row,
    count_lacking,
    read,
    read_contents,
)
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.message import clock, text
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system import disk, progress
from hermes_doctor.hermes.processes import gateway_processes
from hermes_doctor.hermes.settings import config_yaml
from hermes_doctor.sqlite import query_process
from hermes_doctor.sqlite.examine.run import examine
from hermes_doctor.sqlite.reader import InProcess
from hermes_doctor.sqlite.wal import LOG_HEAD as LOG_HEAD

LOG = "-wal"
MOST_GROUPS = 200_000
"""How many group summaries are cached; then those of the copies read first are dropped."""
NOTHING = Contents({}, lambda: contextlib.nullcontext(()))
"""A database whose rows cannot be read counts as one without rows."""


class LastRows:
    """Compares backups with the live databases and with the backups that are kept."""

    def __init__(self, vault: Vault, kept: Sequence[str]) -> None:
        self.vault = vault
        self.kept = [*vault.load_readable(reversed(kept))]
        self.key = os.urandom(16)
        """The key of the fingerprints, so that nobody can construct two rows with the same one."""
        self._live: dict[str, Contents | str] = {}
        self._copies: dict[tuple[str | None, ...], Contents | str] = {}

    def reason_to_keep(self, backup: Backup) -> str | None:
        """Why this backup must not be pruned; None if all of its rows are also elsewhere."""
        for entry in backup.entries:
            name = entry.path.rpartition("/")[2]
            if entry.kind != "file" or name.removesuffix(LOG) not in COMPARED_ROWS:
                continue
            if counted := COMPARED_ROWS.get(name):
                why = self._why(backup, entry, counted)
            else:
                why = self._why_log(backup, entry, COMPARED_ROWS[name.removesuffix(LOG)])
            if why:
                return why
        return None

    def keep(self, backup: Backup) -> None:
        """Count this backup as one of those that are kept."""
        self.kept.insert(0, backup)

    def _why(self, backup: Backup, entry: BackupEntry, counted: ComparedRows) -> str | None:
        name = entry.path
        if self._is_kept(backup, entry):
            return None
        mine = self.copied(backup, entry, counted)
        if isinstance(mine, str):
            return f"its {name} could not be compared with the current one: {mine}"
        live = self.current(name, counted)
        try:
            total = count_lacking(mine, self._wanted(mine, live), self._known(name, live, counted))
        except (CouldNotLook, Trouble, OSError) as why:
            return f"its {name} could not be compared with the current one: {_reason(why)}"
        if not total:
            return None
        if isinstance(live, str):
            return f"{live}, and no other backup has these {counted.number(total)}"
        return f"no other backup has {counted.number(total)} that {name} no longer has"

    def _why_log(self, backup: Backup, entry: BackupEntry, counted: ComparedRows) -> str | None:
        """Why a log that the backup has without its database must be kept, or None."""
        name = entry.path.removesuffix(LOG)
        if entry.size < LOG_HEAD or _same_name(backup, name) or self._is_kept(backup, entry):
            return None
        progress.report(f"comparing {entry.path} of backup {backup.id}")
        live = self.current(name, counted)
        alone = f"it has {entry.path} without {name}, and"
        try:
            with _readable(self.vault, backup, entry) as (log, _):
                mine = row_comparison.messages_of_log(self.vault.home, log, name, counted, self.key)
            total = count_lacking(mine, self._wanted(mine, live), self._known(name, live, counted))
        except (CouldNotLook, Trouble, OSError) as why:
            return f"{alone} its rows could not be compared with {name}: {_reason(why)}"
        if not total:
            return None
        if isinstance(live, str):
            return f"{alone} {live}, and no other backup has its {counted.number(total)}"
        return f"{alone} no other backup has {counted.number(total)} that {name} lacks"

    def _is_kept(self, backup: Backup, entry: BackupEntry) -> bool:
        """Whether a backup that is kept has a file with the same content."""
        same = [(other, kept) for other in self.kept if (kept := _same_name(other, entry.path))]
        return any(_content(other, kept) == _content(backup, entry) for other, kept in same)

    def _wanted(self, mine: Contents, live: Contents | str) -> Collection[int]:
        """The groups that the live database lacks in part, without those that Hermes expires."""
        there = {} if isinstance(live, str) else live.sums
        return {
            group
            for group, summary in mine.sums.items()
            if not summary.same(there.get(group))
            and (group in there or summary.newest >= self._oldest_wanted)
        }

    def _known(
        self, name: str, live: Contents | str, counted: ComparedRows
    ) -> Sequence[Callable[[], Contents]]:
        """The live database and its copies that are kept, each read when it is needed."""

        def readable(backup: Backup, entry: BackupEntry) -> Contents:
            contents = self.copied(backup, entry, counted)
            return NOTHING if isinstance(contents, str) else contents

        known: list[Callable[[], Contents]] = []
        if isinstance(live, Contents):
            known.append(lambda: live)
        copies = [(other, same) for other in self.kept if (same := _same_name(other, name))]
        return [*known, *(partial(readable, *copy) for copy in copies)]

    @cached_property
    def _oldest_wanted(self) -> float:
        """The time before which Hermes deletes sessions, if it is configured to."""
        return expired_before(self.vault.home)

    def current(self, name: str, counted: ComparedRows) -> Contents | str:
        """The rows of the live database, or why they cannot be read."""
        if name not in self._live:
            opened = partial(_live_rows, self.vault.home, name, counted, self.key)
            try:
                self._live[name] = read_contents(opened)
            except CouldNotLook as why:
                self._live[name] = str(why)
        return self._live[name]

    def copied(self, backup: Backup, entry: BackupEntry, counted: ComparedRows) -> Contents | str:
        """The rows of a copy in the vault, or why they cannot be read."""
        key = _content(backup, entry)
        if key not in self._copies:
            opened = partial(_copied_rows, self.vault, backup, entry, counted, self.key)
            try:
                contents = read_contents(opened)
            except (CouldNotLook, Trouble, OSError) as why:
                self._copies[key] = _reason(why)
            else:
                self._copies[key] = contents._replace(opened=opened)  # the rows are not kept
                self._forget()
                return contents
        return self._copies[key]

    def _forget(self) -> None:
        """Drop the cached summaries of the copies that were read first, above a limit."""
        sizes = [0 if isinstance(copy, str) else len(copy.sums) for copy in self._copies.values()]
        while len(sizes) > 1 and sum(sizes) > MOST_GROUPS:
            del self._copies[next(iter(self._copies))], sizes[0]


def more_rows(mine: Contents, other: Contents) -> int:
    """How many rows are in the first and not in the second."""
    groups = {
        group for group, summary in mine.sums.items() if not summary.same(other.sums.get(group))
    }
    return count_lacking(mine, groups, [lambda: other])


def _reason(error: Exception) -> str:
    """Why something cannot be compared, as the end of a sentence."""
    return "the copy cannot be read" if isinstance(error, OSError) else str(error).rstrip(".")


def _same_name(backup: Backup, name: str) -> BackupEntry | None:
    entry = backup.entry(name)
    return entry if entry and entry.kind == "file" else None


def _content(backup: Backup, entry: BackupEntry) -> tuple[str | None, ...]:
    """What a database in a backup consists of: two with the same content have the same rows."""
    beside = [backup.entry(entry.path + suffix) for suffix in ("-wal", "-journal")]
    return entry.sha256, *(backup_entry.sha256 if backup_entry else None for backup_entry in beside)


@contextmanager
def _readable(vault: Vault, backup: Backup, entry: BackupEntry) -> Iterator[tuple[Path, str]]:
    """A path where SQLite can read the copy, and the mode to open it in.

    A copy that is stored in blocks is rebuilt in a scratch folder of the vault.
    """
    journal = backup.entry(entry.path + "-journal")
    if journal and journal.kind == "file" and journal.size:
        raise CouldNotLook("it has an unfinished transaction")
    log = backup.entry(entry.path + "-wal")
    if log and (log.kind != "file" or log.size < LOG_HEAD):
        log = None
    how = query_process.LEFTOVER_LOG if log else query_process.NOT_IN_USE
    if not entry.blocks and not (log and log.blocks):
        yield backup.copy_of(entry), how
        return
    vault.room(entry.size + (log.size if log else 0))
    with vault.unfinished(prepare=False) as scratch:
        for file, place in ((entry, scratch / "copy"), (log, scratch / "copy-wal")):
            if file:
                with disk.new_file(place, durable=False) as fd:
                    restore_files.write_content(backup, file, fd)
        yield scratch / "copy", how


@contextmanager
def _copied_rows(
    vault: Vault, backup: Backup, entry: BackupEntry, counted: ComparedRows, key: bytes
) -> Iterator[Iterator[Row]]:
    """Read the rows of a copy in the vault."""
    progress.report(f"comparing {entry.path} of backup {backup.id}")
    with (
        _readable(vault, backup, entry) as copy,
        contextlib.closing(InProcess(*copy)) as reader,
    ):
        yield read(reader, counted, key)


@contextmanager
def _live_rows(home: Home, name: str, counted: ComparedRows, key: bytes) -> Iterator[Iterator[Row]]:
    """Read the rows of a live database; nothing is locked or changed."""
    progress.report(f"comparing the current {name}")
    path = home.path / name

    def holders() -> list[int]:
        return gateway_processes.processes_using([path]).get(path, [])

    try:
        database = examine(path, holders=holders, deep=False)
    except FileNotFoundError:
        raise CouldNotLook("{name} is missing now", name=name) from None
    except (CouldNotLook, OSError):
        raise CouldNotLook("{name} could not be read", name=name) from None
    with contextlib.closing(database.reader) if database.reader else contextlib.nullcontext():
        if database.header.empty and not database.log.pages:
            yield iter(())
            return
        if database.reader is None or not database.readable:
            raise CouldNotLook("{name} could not be read", name=name)
        with contextlib.closing(database.reader):
            try:
                yield read(database.reader, counted, key)
            except CouldNotLook as why:
                what = "the rows of {name} could not be counted ({reason})"
                raise CouldNotLook(what, name=name, reason=why) from None


def expired_before(home: Home) -> float:
    """The time before which `sessions.auto_prune` lets Hermes delete sessions; 0 if it is off."""
    try:
        written = config_yaml.read(home)
    except (CouldNotLook, OSError):
        return 0.0
    block = ((written.values if written else None) or {}).get("sessions")
    if not isinstance(block, dict) or block.get("auto_prune") is not True:
        return 0.0
    days = block.get("retention_days", 90)
    return time.time() - days * 86400 if isinstance(days, int) and 0 < days < 36500 else 0.0


def differences(rows: LastRows, backup: Backup, names: Container[str]) -> Iterator[str]:
    """How the databases of a backup differ from the live ones, in sentences."""
    for entry in backup.entries:
        counted = COMPARED_ROWS.get(entry.path.rpartition("/")[2])
        if not counted or entry.kind != "file" or entry.path not in names:
            continue
        name = entry.path
        mine = rows.copied(backup, entry, counted)
        live = rows.current(name, counted)
        if isinstance(mine, str):
            yield f"Could not compare {name} of backup {backup.id}: {mine}."
            continue
        if isinstance(live, str):
            yield f"Could not compare backup {backup.id} with the current {name}: {live}."
            continue
        try:
            lacks, new = more_rows(mine, live), more_rows(live, mine)
        except (CouldNotLook, OSError) as why:
            yield f"Could not compare backup {backup.id} with the current {name}: {why}."
            continue
        has = f"lacks {counted.number(lacks)} that" if lacks else f"has every {counted.noun} that"
        yield f"{name} {has} backup {backup.id} has."
        if new:
            yield (
                f"{name} has {counted.number(new)} that backup {backup.id} lacks: the restore "
                f"removes them from {name} and keeps them in a backup. To get them back: "
                f"hermes-doctor undo"
            )


def removed_by(rows: LastRows, backup: Backup, entries: Iterable[BackupEntry]) -> list[str]:
    """Say how many rows a restore of these entries removes from the live databases."""
    since = backup.created_at.timestamp()
    return [sentence for entry in entries if (sentence := removed(rows, backup, entry, since))]


def removed(rows: LastRows, backup: Backup, entry: BackupEntry, since: float) -> str:
    """Say how many rows a restore of this entry removes from the live database; "" if none.

    If the copy cannot be compared, the rows from after the time `since` are counted.
    """
    name = entry.path
    counted = COMPARED_ROWS.get(name.rpartition("/")[2])
    there = os.path.lexists(rows.vault.home.path / name)
    if counted is None or entry.kind == "mode" or not there:
        return ""
    live = rows.current(name, counted)
    if isinstance(live, str):
        what = (
            "Could not count what is new in {file}: {reason}. The current file is kept in a backup."
        )
        return text(what, file=name, reason=live)
    mine = rows.copied(backup, entry, counted) if entry.kind == "file" else ""
    try:
        new = _later(live, since) if isinstance(mine, str) else more_rows(live, mine)
    except (CouldNotLook, OSError) as why:
        return text("Could not count what is new in {file}: {reason}.", file=name, reason=why)
    if not new:
        return ""
    what = "{rows} that the restored copy lacks will be removed from {file} and kept in a backup."
    if isinstance(mine, str):
        what = "{rows} from after {time} will be removed from {file} and kept in a backup."
    time = clock(datetime.fromtimestamp(since, UTC))
    return text(what, rows=counted.number(new), time=time, file=name)


def _later(live: Contents, since: float) -> int:
    """How many rows have a time after `since`."""
    with live.opened() as rows:
        return sum(at is not None and at > since for _, _, at in rows)
