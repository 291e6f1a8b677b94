"""Files that a process of its own saves, while this one saves others.

To compare, hash and examine a large database takes as long as all the rest. And of many files a
part goes there: threads would only wait for each other, since Python lets one of them work.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes_doctor.backup.entry import Entry
from hermes_doctor.backup.entry_rules import entries_of
from hermes_doctor.backup.manifest import Source
from hermes_doctor.backup.unreadable_files import Missing
from hermes_doctor.home import SIDECARS, is_database
from hermes_doctor.model import CannotFix
from hermes_doctor.system.files import MEGABYTE

if TYPE_CHECKING:
    from hermes_doctor.backup.partial import Saver
    from hermes_doctor.system.workers import Child

STEP = 16 * MEGABYTE
"""So much is told at a time."""
Groups = Sequence[Sequence[Source]]


class Beside:
    """Files that another process saves."""

    def __init__(self, saving: Saver, groups: Groups = (), other: Child | None = None) -> None:
        self._saving = saving
        self._groups = groups
        self._other = other
        self._told = ""

    def listen(self) -> None:
        """Pass on how far it is, if it has told."""
        while self._other and not self._told and self._other.speaks:
            self._hear(self._other)

    def finished(self) -> list[Entry]:
        """Wait for it, and take over what it made."""
        while self._other and not self._told:
            self._hear(self._other)
        if self._other is None:
            return self._again()
        told = json.loads(bytes.fromhex(self._told))
        if "errno" in told:
            raise OSError(told["errno"], os.strerror(told["errno"]))
        self._saving.made.unread |= told["unread"]
        self._saving.made.fresh |= set(told["fresh"])
        self._saving.earlier.shared |= told["shared"]
        self._saving.earlier.wrong |= set(told["wrong"])
        self._saving.missing += [Missing(*one) for one in told["missing"]]
        return [*entries_of(told["entries"])]

    def _again(self) -> list[Entry]:
        """Save here what a process has not that was ended: a map of a disk that fails ends it,
        where one that reads is told."""
        for source in (source for group in self._groups for source in group):
            beside = SIDECARS if is_database(source.place) else ()  # it may have found more of them
            for suffix in ("", *beside):
                self._saving.made.drop(source.name + suffix)
        return [entry for group in self._groups for entry in self._saving.group(group)]

    def _hear(self, other: Child) -> None:
        try:
            word, text = other.hear()
        except CannotFix:
            self._other = None
            return
        if word != "said":
            self._told = text
        elif self._saving.made.progress:
            self._saving.made.progress(int(text))


@contextmanager
def saved(saving: Saver, groups: Groups) -> Iterator[Beside]:
    """Save groups meanwhile."""
    if not groups:
        yield Beside(saving)
        return
    from hermes_doctor.system.workers import child

    with child(saving.made.folder, lambda say: _told(saving, groups, say)) as other:
        yield Beside(saving, groups, other)


def _told(saving: Saver, groups: Groups, say: Callable[[str], None]) -> str:
    """In that process: save them, and tell what came of it."""
    waiting = 0

    def progress(count: int) -> None:
        nonlocal waiting
        waiting += count
        if waiting >= STEP or not count:
            say(str(waiting))
            waiting = 0

    made = saving.made
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
    """As one word: spaces within it would be lost on the way."""
    return json.dumps(told, default=dict).encode("ascii").hex()
