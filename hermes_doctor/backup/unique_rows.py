"""Find rows that only one backup still has: the live database and all kept backups lack them."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from hermes_doctor.backup import entry_content
from hermes_doctor.backup.entry import BackupEntry
from hermes_doctor.backup.manifest import Backup
from hermes_doctor.backup.row_comparison import (
    COMPARED_ROWS,
    ComparedRows,
    Contents,
    Row,
    count_lacking,
    read,
    read_contents,
)
from hermes_doctor.backup.vault import HOME_FILE, PARTIAL, Vault
from hermes_doctor.home import Home
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook, Trouble
from hermes_doctor.sqlite import inspector
from hermes_doctor.sqlite.reader import InProcess
from hermes_doctor.sqlite.wal import HEAD as LOG_HEAD
from hermes_doctor.system import disk, progress
from hermes_doctor.system.signals import delay_signals

LOG = "-wal"
MOST_GROUPS = 200_000
"""How many group summaries are cached; then those of the copies read first are dropped."""
NOTHING = Contents({}, lambda: contextlib.nullcontext(()))
"""A database whose rows cannot be read counts as one without rows."""


class LastRows:
    """Compares backups with the live databases and with the backups that are kept."""

    def __init__(self, vault: Vault, kept: Sequence[str]) -> None:
        self.vault = vault
        self.kept = [backup for id in reversed(kept) if (backup := self._loaded(id))]
        self.key = os.urandom(16)
        """The key of the fingerprints, so that nobody can construct two rows with the same one."""
        self._live: dict[str, Contents | str] = {}
        self._copies: dict[tuple[str | None, ...], Contents | str] = {}
        self._expired: float | None = None

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
        from hermes_doctor.backup import logs_without_database

        name = entry.path.removesuffix(LOG)
        if entry.size < LOG_HEAD or _same_name(backup, name) or self._is_kept(backup, entry):
            return None
        progress.report(f"comparing {entry.path} of backup {backup.id}")
        live = self.current(name, counted)
        alone = f"it has {entry.path} without {name}, and"
        try:
            with _readable(self.vault, backup, entry) as (log, _):
                mine = logs_without_database.messages_of_log(
                    self.vault.home, log, name, counted, self.key
                )
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
        same = [(one, found) for one in self.kept if (found := _same_name(one, entry.path))]
        return any(_content(one, found) == _content(backup, entry) for one, found in same)

    def _wanted(self, mine: Contents, live: Contents | str) -> Collection[int]:
        """The groups that the live database lacks in part, without those that Hermes expires."""
        there = {} if isinstance(live, str) else live.sums
        return {
            group
            for group, one in mine.sums.items()
            if not one.same(there.get(group))
            and (group in there or one.newest >= self._oldest_wanted())
        }

    def _known(
        self, name: str, live: Contents | str, counted: ComparedRows
    ) -> Sequence[Callable[[], Contents]]:
        """The live database and its copies that are kept, each read when it is needed."""
        found: list[Callable[[], Contents]] = []
        if isinstance(live, Contents):
            found.append(lambda: live)
        copies = [(one, same) for one in self.kept if (same := _same_name(one, name))]
        found += [partial(self._readable_or_empty, *copy, counted) for copy in copies]
        return found

    def _readable_or_empty(
        self, backup: Backup, entry: BackupEntry, counted: ComparedRows
    ) -> Contents:
        found = self.copied(backup, entry, counted)
        return NOTHING if isinstance(found, str) else found

    def _oldest_wanted(self) -> float:
        """The time before which Hermes deletes sessions, if it is configured to."""
        if self._expired is None:
            self._expired = expired_before(self.vault.home)
        return self._expired

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
                found = read_contents(opened)
            except (CouldNotLook, Trouble, OSError) as why:
                self._copies[key] = _reason(why)
            else:
                self._copies[key] = found._replace(opened=opened)  # the rows are not kept
                self._forget()
                return found
        return self._copies[key]

    def _forget(self) -> None:
        """Drop the cached summaries of the copies that were read first, above a limit."""
        sizes = [0 if isinstance(one, str) else len(one.sums) for one in self._copies.values()]
        while len(sizes) > 1 and sum(sizes) > MOST_GROUPS:
            del self._copies[next(iter(self._copies))], sizes[0]

    def _loaded(self, id: str) -> Backup | None:
        try:
            return self.vault.load(id)
        except Trouble:
            return None


def more_rows(mine: Contents, other: Contents) -> int:
    """How many rows are in the first and not in the second."""
    groups = {group for group, one in mine.sums.items() if not one.same(other.sums.get(group))}
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
    return entry.sha256, *(one.sha256 if one else None for one in beside)


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
    how = inspector.LEFTOVER_LOG if log else inspector.NOT_IN_USE
    if not entry.blocks and not (log and log.blocks):
        yield backup.copy_of(entry), how
        return
    vault.room(entry.size + (log.size if log else 0))
    name = vault.next_id() + PARTIAL
    scratch = vault.root / name
    disk.make_folder(scratch)
    try:
        disk.save(scratch / HOME_FILE, str(vault.home.path).encode("utf-8", "surrogateescape"))
        for one, place in ((entry, scratch / "copy"), (log, scratch / "copy-wal")):
            if one:
                with disk.new_file(place, durable=False) as fd:
                    entry_content.write_content(backup, one, fd)
        yield scratch / "copy", how
    finally:
        with delay_signals(), contextlib.suppress(OSError):
            vault.discard(name)


@contextmanager
def _copied_rows(
    vault: Vault, backup: Backup, entry: BackupEntry, counted: ComparedRows, key: bytes
) -> Iterator[Iterator[Row]]:
    """Read the rows of a copy in the vault."""
    progress.report(f"comparing {entry.path} of backup {backup.id}")
    with contextlib.ExitStack() as stack:
        place, how = stack.enter_context(_readable(vault, backup, entry))
        reader = stack.enter_context(contextlib.closing(InProcess(place, how)))
        yield read(reader, counted, key)


@contextmanager
def _live_rows(home: Home, name: str, counted: ComparedRows, key: bytes) -> Iterator[Iterator[Row]]:
    """Read the rows of a live database; nothing is locked or changed."""
    from hermes_doctor.processes import gateway_processes
    from hermes_doctor.sqlite.examine import examine

    progress.report(f"comparing the current {name}")
    path = home.path / name

    def holders() -> list[int]:
        return gateway_processes.processes_using([path]).get(path, [])

    try:
        found = examine(path, holders=holders, deep=False)
    except FileNotFoundError:
        raise CouldNotLook(text("{name} is missing now", name=name)) from None
    except (CouldNotLook, OSError):
        raise CouldNotLook(text("{name} could not be read", name=name)) from None
    with contextlib.closing(found.reader) if found.reader else contextlib.nullcontext():
        if found.header.empty and not found.log.pages:
            yield iter(())
            return
        if found.reader is None or not found.readable:
            raise CouldNotLook(text("{name} could not be read", name=name))
        with contextlib.closing(found.reader):
            try:
                yield read(found.reader, counted, key)
            except CouldNotLook as why:
                raise CouldNotLook(
                    text(
                        "the rows of {name} could not be counted ({reason})", name=name, reason=why
                    )
                ) from None


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
