"""Plan to set a foreign write-ahead log aside, or to add the rows that exist only in it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.core.message import sentences, text
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.files import Snapshot, open_regular, reason, snapshot
from hermes_doctor.core.system.privileges import as_owner_of
from hermes_doctor.diagnosis.step import Change, Step
from hermes_doctor.repair.steps.database import ReplaceDatabase
from hermes_doctor.repair.steps.files import MoveAside
from hermes_doctor.sqlite.files import ASIDE, resolve_symlink

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.sqlite.salvage.log_rows import Ask, OnlyInLog

HISTORY = "state.db"
"""The only database whose rows are added from a log: a kanban task would run again."""

_BUSY = "Another process is writing {file} now. Try again."
PAUSES = (0.2, 0.5, 1.0, 2.0)
"""Seconds before each further attempt to copy a database that is being written."""
_COPIED = ("", "-wal")
"""Suffixes of the files that a stop of the gateway may change: the database and its log."""


class _Busy(CannotFix):
    """Another process writes the database at this moment."""


@dataclass(frozen=True)
class SetLogAside(Step):
    """Step that renames a foreign log so that SQLite does not apply it; the vault keeps a copy."""

    path: Path
    """The log."""
    kept_log: Path
    log_rows: str
    """How many rows are only in it, in words."""
    hint: tuple[str, ...] = ()
    """Lines below the sentence of the plan."""

    def sentence(self) -> str:
        return text(
            "{file}: rename it to {kept}, because the database is intact only "
            "without this write-ahead log (-wal). Only in it: {rows}",
            file=self.path.name,
            kept=self.kept_log.name,
            rows=self.log_rows,
        )

    def lines(self) -> Sequence[str]:
        return self.hint

    def changes(self) -> Sequence[Change]:
        taken = snapshot(self.path)
        if taken.kind != "file":
            raise CannotFix("{file} no longer exists. Run the check again.", file=self.path.name)
        kept = Change(self.kept_log, snapshot(self.kept_log), make=self._copy, room=taken.size)
        return [kept, Change(self.path, taken, absent=True)]

    def notes(self) -> Sequence[str]:
        return (
            "The database file was not changed. "
            f"The write-ahead log (-wal) is kept as {self.kept_log.name}.",
        )

    def _copy(self, target: Path) -> None:
        with disk.new_file(target) as fd:
            disk.copy(self.path, fd)


@dataclass(frozen=True)
class KeepDatabase(Step):
    """Step that sets aside a foreign log which a gateway uses, and keeps the database unchanged.

    A stopping gateway writes the log into the database and would damage it. So both are first
    copied into unnamed files, and the database is restored if the stop changed it.
    """

    path: Path
    kept_log: Path | None
    """Where the log is kept; None if the vault is enough."""
    log_rows: str
    hint: tuple[str, ...] = ()
    open_copies: dict[str, int] = field(default_factory=dict, compare=False)
    """The open copies, by the suffix of the original."""
    snapshots: list[Snapshot] = field(default_factory=list, compare=False)
    """Snapshots of the database and its log before they were copied."""

    def sentence(self) -> str:
        name = self.path.name
        if self.kept_log is None:
            return text(
                "{name}: keep it as it is now and remove {name}-wal, because a stop of "
                "the gateway would write this write-ahead log (-wal) into it",
                name=name,
            )
        return text(
            "{name}: keep it as it is now and rename {name}-wal to {kept}, because a "
            "stop of the gateway would write this write-ahead log (-wal) into it. "
            "Only in it: {rows}",
            name=name,
            kept=self.kept_log.name,
            rows=self.log_rows,
        )

    def lines(self) -> Sequence[str]:
        return self.hint if self.kept_log else ()

    def prepare(self) -> None:
        for pause in PAUSES:
            try:
                self._copy_both()
                return
            except _Busy:
                self.release()
                time.sleep(pause)
        self._copy_both()

    def _copy_both(self) -> None:
        self.snapshots[:] = self._now()
        for suffix, taken in zip(_COPIED, self.snapshots, strict=True):
            self._hold(suffix, taken)
        with _alone(self.path) as ask:
            verdict = [row[0] for row in ask("PRAGMA quick_check(1)")]
        if self._now() != self.snapshots:
            raise _Busy(_BUSY, file=self.path.name)
        if verdict != ["ok"]:  # the log may have been written into it since the plan was made
            raise CannotFix(
                "SQLite no longer confirms that {file} is intact without its write-ahead log "
                "(-wal). Run the check again.",
                file=self.path.name,
            )

    def _now(self) -> list[Snapshot]:
        return [snapshot(self.path.with_name(self.path.name + suffix)) for suffix in _COPIED]

    def _hold(self, suffix: str, taken: Snapshot) -> None:
        """Copy one file with the privileges of the home's owner, who may replace it any time."""
        path = self.path.with_name(self.path.name + suffix)
        try:
            with as_owner_of(path) as here:
                source = open_regular(here, follow=False)
        except (OSError, CouldNotLook) as why:
            raise CannotFix("Could not read {file}. Run it as its owner.", file=path.name) from why
        try:
            if Snapshot.of(os.fstat(source)) != taken:
                raise _Busy(_BUSY, file=path.name)
            try:
                self.open_copies[suffix] = kept = disk.unnamed_file(path.parent)
                disk.copy_range(source, kept, 0, taken.size)
            except OSError as error:
                raise CannotFix(
                    "Could not copy {file}: {reason}.", file=path.name, reason=reason(error, path)
                ) from error
        finally:
            os.close(source)

    def release(self) -> None:
        while self.open_copies:
            os.close(self.open_copies.popitem()[1])

    def changes(self) -> Sequence[Change]:
        changes = []
        log = snapshot(self.path.with_name(self.path.name + "-wal"))
        if self.kept_log is not None:
            make = partial(self._make, "-wal")
            changes.append(Change(self.kept_log, snapshot(self.kept_log), make=make, room=log.size))
        for suffix in ("-wal", "-shm"):
            beside = self.path.with_name(self.path.name + suffix)
            if (taken := snapshot(beside)).kind == "file":
                changes.append(Change(beside, taken, absent=True))
        now = snapshot(self.path)
        if not self.snapshots or now != self.snapshots[0]:
            changes.append(Change(self.path, now, make=partial(self._make, ""), room=now.size))
        return changes

    def notes(self) -> Sequence[str]:
        said = [f"{self.path.name} has the content that it had before the gateway stopped."]
        kept = (
            f"The write-ahead log (-wal) is kept as {self.kept_log.name}." if self.kept_log else ""
        )
        return [*said, kept] if kept else said

    def _make(self, suffix: str, target: Path) -> None:
        kept = self.open_copies[suffix]
        with disk.new_file(target) as fd:
            disk.copy_range(kept, fd, 0, os.fstat(kept).st_size)


def set_log_aside(probes: Probes, path: Path, hint: Sequence[str]) -> list[Step]:
    """Plan to move a log away; it stays in the home if it has rows to add or may not be foreign.

    `hint` is shown below that step in the plan.
    """
    log, index = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    only = _rows(probes, path, log) if probes.home.name_of(path) == HISTORY else ""
    aside: Path | None = None
    condition = probes.databases.condition(path)
    if not only and not condition.foreign_log:  # it may be the database's own: keep it in the home
        only, hint = "no rows that can be added", ()
    if only:
        when = datetime.fromtimestamp(snapshot(log).mtime_ns / 1e9, UTC)
        aside = path.with_name(f"{path.name}{ASIDE}{when:%Y%m%dT%H%M%S}")
        if snapshot(aside).kind != "absent":
            raise CannotFix("{file} exists already. Move it away first.", file=aside.name)
    if condition.holders:
        return [KeepDatabase(path, aside, only, tuple(hint))]
    why = "the database is intact only without it"
    steps: list[Step] = [SetLogAside(log, aside, only, tuple(hint))] if aside else []
    rest = [part for part in (log, index) if part != log or aside is None]
    steps += [MoveAside(part, why=why) for part in rest if snapshot(part).kind == "file"]
    return steps


def _rows(probes: Probes, path: Path, log: Path) -> str:
    """How many rows exist only in a log, in words; empty if there are none."""
    try:
        with _alone(path) as ask:
            only = _compared(probes, path, log, ask)
    except (CannotFix, CouldNotLook, FileNotFoundError):
        return "rows that could not be counted"
    return only.counted if only.any else ""


def add_rows(probes: Probes, path: Path, log: Path) -> ReplaceDatabase:
    """Add the rows to a history that exist only in a log that was set aside."""
    from hermes_doctor.repair.planning import database_repair
    from hermes_doctor.sqlite.repairs.add_rows import add_log_rows

    plan = database_repair.blueprint_of(probes, path)
    reader = probes.databases.condition(path).reader
    if reader is None:
        raise CannotFix("{file} is damaged. Repair it first.", file=path.name)
    only = _compared(probes, path, log, lambda sql: reader.ask(sql).rows)
    if not only.any:
        nothing = text("{file} lacks no row that can be added from it.", file=path.name)
        raise CannotFix(sentences(nothing, *only.left_out()))
    return ReplaceDatabase(
        path,
        partial(add_log_rows, log=log, plan=plan),
        why=" ".join([f"add {only.counted} from {log.name}.", *only.left_out()]),
        expect=snapshot(resolve_symlink(path)),
        times=2,
    )


def _compared(probes: Probes, path: Path, log: Path, ask: Ask) -> OnlyInLog:
    from hermes_doctor.repair.planning import database_repair
    from hermes_doctor.sqlite.salvage import log_rows

    return log_rows.find_only_in_log(
        log_rows.read(log, database_repair.blueprint_of(probes, path)), ask
    )


@contextmanager
def _alone(path: Path) -> Iterator[Ask]:
    """Query the database without its log, with SQLite in a worker process."""
    from hermes_doctor.sqlite import query_process
    from hermes_doctor.sqlite.reader import InProcess

    with closing(InProcess(path, query_process.NOT_IN_USE)) as reader:
        yield lambda sql: reader.ask(sql).rows
