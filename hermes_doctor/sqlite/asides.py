"""Write-ahead logs that are set aside, and the rows that exist only in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor import durable
from hermes_doctor.files import listing, snapshot
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.steps import Change, ReplaceDatabase, Step, real

if TYPE_CHECKING:
    from hermes_doctor.probes import Probes
    from hermes_doctor.sqlite.salvage.logrows import Ask, OnlyInLog

HISTORY = "state.db"
"""The one database whose rows can be added from a log: a task of a board would run again."""
_ASIDE = "-wal.aside-"


def set_aside_logs(path: Path) -> list[Path]:
    """The logs of a database that lie beside it under another name, oldest first."""
    try:
        names = listing(path.parent)
    except (CouldNotLook, FileNotFoundError):
        return []
    found = [path.with_name(name) for name in sorted(names) if name.startswith(path.name + _ASIDE)]
    return [one for one in found if snapshot(one).kind == "file"]


@dataclass(frozen=True)
class SetLogAside(Step):
    """Give a foreign log another name, so that SQLite does not replay it; the vault has it too."""

    path: Path
    """The log."""
    aside: Path
    only: str
    """How many rows are only in it."""
    hint: tuple[str, ...] = ()
    """Lines below the sentence of the plan."""

    def sentence(self) -> str:
        return (
            f"rename {self.path.name} to {self.aside.name}: it is not of this database. "
            f"Only in it: {self.only}"
        )

    def lines(self) -> Sequence[str]:
        return self.hint

    def changes(self) -> Sequence[Change]:
        taken = snapshot(self.path)
        if taken.kind != "file":
            raise CannotFix(f"{self.path.name} is gone")
        kept = Change(self.aside, snapshot(self.aside), make=self._copy, room=taken.size)
        return [kept, Change(self.path, taken, absent=True)]

    def notes(self) -> Sequence[str]:
        return (f"Nothing of the database is lost. The log is kept as {self.aside.name}.",)

    def _copy(self, target: Path) -> None:
        with durable.fresh(target) as fd:
            durable.copy(self.path, fd)


def set_log_aside(probes: Probes, path: Path, hint: Sequence[str]) -> SetLogAside | None:
    """The step for a log with rows that the database lacks; None if it has none.

    `hint` is shown below it in the plan.
    """
    log = path.with_name(path.name + "-wal")
    if probes.home.name_of(path) != HISTORY:
        return None
    try:
        with _alone(path) as ask:
            only = _compared(probes, path, log, ask)
    except (CannotFix, CouldNotLook):
        words = "rows that could not be counted"
    else:
        if not only.any:
            return None
        words = only.counted
    when = datetime.fromtimestamp(snapshot(log).mtime_ns / 1e9, UTC)
    aside = path.with_name(f"{path.name}{_ASIDE}{when:%Y%m%dT%H%M%S}")
    if snapshot(aside).kind != "absent":
        raise CannotFix(f"{aside.name} exists already")
    return SetLogAside(log, aside, words, tuple(hint))


def add_rows(probes: Probes, path: Path, log: Path) -> ReplaceDatabase:
    """Add the rows to a history that exist only in a log that was set aside."""
    from functools import partial

    from hermes_doctor.sqlite.mending import logrows, planning

    plan = planning.plan_of(probes, path)
    reader = probes.condition(path).reader
    if reader is None:
        raise CannotFix(f"{path.name} must be sound first")
    only = _compared(probes, path, log, lambda sql: reader.ask(sql).rows)
    if not only.any:
        left = " ".join(only.left_out())
        raise CannotFix(f"{path.name} lacks no row that can be added from it. {left}".strip())
    return ReplaceDatabase(
        path,
        partial(logrows.add, log=log, plan=plan),
        why=" ".join([f"add {only.counted} from {log.name}.", *only.left_out()]),
        expect=snapshot(real(path)),
        times=2,
    )


def _compared(probes: Probes, path: Path, log: Path, ask: Ask) -> OnlyInLog:
    from hermes_doctor.sqlite.mending import planning
    from hermes_doctor.sqlite.salvage import logrows

    return logrows.compare(logrows.read(log, planning.plan_of(probes, path)), ask)


@contextmanager
def _alone(path: Path) -> Iterator[Ask]:
    """Questions to the file without its log, answered by SQLite in a process of its own."""
    from hermes_doctor.sqlite import inspector
    from hermes_doctor.sqlite.reader import InProcess

    with closing(InProcess(path, inspector.REST)) as reader:
        yield lambda sql: reader.ask(sql).rows
