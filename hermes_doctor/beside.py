"""Large databases, saved by a process of their own while the other files are.

To compare, hash and examine one takes as long as all the rest.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.files import MEGABYTE
from hermes_doctor.manifest import Entry, Source, entries_of
from hermes_doctor.model import CannotFix, Trouble

if TYPE_CHECKING:
    from hermes_doctor.child import Child
    from hermes_doctor.saving import Saving

STEP = 16 * MEGABYTE
"""So much is told at a time: nobody listens before the other files are saved."""
Groups = Sequence[Sequence[Source]]


@contextmanager
def saved(saving: Saving, groups: Groups) -> Iterator[Callable[[], list[Entry]]]:
    """Save groups meanwhile; what is given waits until they are."""
    if not groups:
        yield list
        return
    from hermes_doctor.child import child

    with child(saving.partial, lambda say: _told(saving, groups, say)) as other:
        yield lambda: _heard(saving, other)


def _told(saving: Saving, groups: Groups, say: Callable[[str], None]) -> str:
    """In that process: save them, and tell what came of it."""
    waiting = 0

    def progress(count: int) -> None:
        nonlocal waiting
        waiting += count
        if waiting >= STEP or not count:
            say(str(waiting))
            waiting = 0

    saving.progress = progress if saving.progress else None
    saving.unread, saving.fresh, saving.earlier.shared = {}, set(), False
    saving.alone = True
    try:
        entries = [entry for group in groups for entry in saving.group(group)]
    except OSError as error:
        return _line({"errno": error.errno or 0})
    progress(0)
    return _line(
        {
            "entries": [entry._asdict() for entry in entries],
            "unread": {str(path): sha256 for path, sha256 in saving.unread.items()},
            "fresh": list(map(str, saving.fresh)),
            "shared": saving.earlier.shared,
        }
    )


def _line(told: dict[str, object]) -> str:
    """As one word: spaces within it would be lost on the way."""
    return json.dumps(told, default=dict).encode("ascii").hex()


def _heard(saving: Saving, other: Child) -> list[Entry]:
    """Wait for it, and take over what it tells."""
    try:
        word, text = other.hear()
        while word == "said":
            if saving.progress:
                saving.progress(int(text))
            word, text = other.hear()
    except CannotFix as why:
        raise Trouble(f"A database could not be saved ({why}). Nothing was changed.") from None
    told = json.loads(bytes.fromhex(text))
    if "errno" in told:
        raise OSError(told["errno"], os.strerror(told["errno"]))
    saving.unread |= {Path(path): sha256 for path, sha256 in told["unread"].items()}
    saving.fresh |= set(map(Path, told["fresh"]))
    saving.earlier.shared |= told["shared"]
    return [*entries_of(told["entries"])]
