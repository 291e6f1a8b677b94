"""Save a share of the files in a worker process.

Comparing, hashing and examining a large database takes as long as all the rest. Many files are
split between workers, too; threads would only wait for each other because of Python's GIL.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes_doctor.backup.entry import BackupEntry
from hermes_doctor.backup.entry_rules import entries_of
from hermes_doctor.backup.manifest import BackupSource
from hermes_doctor.backup.unreadable_files import MissingFile
from hermes_doctor.home import SIDECARS, is_database
from hermes_doctor.model import CannotFix
from hermes_doctor.system.files import MEGABYTE

if TYPE_CHECKING:
    from hermes_doctor.backup.partial import Saver
    from hermes_doctor.system.workers import Worker

STEP = 16 * MEGABYTE
"""Bytes between two progress messages."""
Groups = Sequence[Sequence[BackupSource]]


class SaveWorker:
    """A worker process that saves groups of files."""

    def __init__(self, saver: Saver, groups: Groups = (), worker: Worker | None = None) -> None:
        self._saver = saver
        self._groups = groups
        self._worker = worker
        self._result = ""

    def listen(self) -> None:
        """Pass on the worker's progress messages, if there are any."""
        while self._worker and not self._result and self._worker.has_output:
            self._hear(self._worker)

    def wait_for_results(self) -> list[BackupEntry]:
        """Wait for the worker, and take over its results."""
        while self._worker and not self._result:
            self._hear(self._worker)
        if self._worker is None:
            return self._again()
        told = json.loads(bytes.fromhex(self._result))
        if "errno" in told:
            raise OSError(told["errno"], os.strerror(told["errno"]))
        self._saver.partial.unread |= told["unread"]
        self._saver.partial.fresh |= set(told["fresh"])
        self._saver.earlier.shared |= told["shared"]
        self._saver.earlier.wrong |= set(told["wrong"])
        self._saver.missing += [MissingFile(*one) for one in told["missing"]]
        return [*entries_of(told["entries"])]

    def _again(self) -> list[BackupEntry]:
        """Save the files in this process, because the worker died.

        A disk error kills a process that uses a memory map, but is an exception when reading.
        """
        for source in (source for group in self._groups for source in group):
            beside = (
                SIDECARS if is_database(source.path_str) else ()
            )  # the worker may have added them
            for suffix in ("", *beside):
                self._saver.partial.drop(source.name + suffix)
        return [entry for group in self._groups for entry in self._saver.group(group)]

    def _hear(self, other: Worker) -> None:
        try:
            word, text = other.receive()
        except CannotFix:
            self._worker = None
            return
        if word != "said":
            self._result = text
        elif self._saver.partial.progress:
            self._saver.partial.progress(int(text))


@contextmanager
def start_worker(saving: Saver, groups: Groups) -> Iterator[SaveWorker]:
    """Start a worker that saves these groups."""
    if not groups:
        yield SaveWorker(saving)
        return
    from hermes_doctor.system.workers import start_worker

    with start_worker(saving.partial.folder, lambda say: _told(saving, groups, say)) as other:
        yield SaveWorker(saving, groups, other)


def _told(saving: Saver, groups: Groups, say: Callable[[str], None]) -> str:
    """Save the groups in the worker process, and return the results as one line."""
    waiting = 0

    def progress(count: int) -> None:
        nonlocal waiting
        waiting += count
        if waiting >= STEP or not count:
            say(str(waiting))
            waiting = 0

    made = saving.partial
    made.progress = progress if made.progress else None
    made.unread, made.fresh, saving.earlier.shared = {}, set(), False
    saving.missing = []
    made.alone = True
    try:
        entries = [entry for group in groups for entry in saving.group(group)]
    except OSError as error:
        return _line({"errno": error.errno or 0})
    progress(0)
    return _line(
        {
            "entries": [entry._asdict() for entry in entries],
            "unread": made.unread,
            "fresh": list(made.fresh),
            "shared": saving.earlier.shared,
            "wrong": list(saving.earlier.wrong),
            "missing": saving.missing,
        }
    )


def _line(told: dict[str, object]) -> str:
    """Encode results as one word, because the pipe does not preserve spaces."""
    return json.dumps(told, default=dict).encode("ascii").hex()
