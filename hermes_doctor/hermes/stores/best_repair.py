"""Choose the repair of a damaged store that loses the least."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hermes_doctor.core.file_copies import TextCopy
from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import clock, text
from hermes_doctor.hermes.stores.entries import difference, entries_by_name
from hermes_doctor.hermes.stores.json_repairs import RepairedStore, repair_bytes
from hermes_doctor.hermes.stores.store_file import StoreFile


class Repair(NamedTuple):
    """The repaired store, and what happens to each entry."""

    data: bytes
    why: str
    lossless: bool
    """Nothing is lost that Hermes or a person could still read."""
    lines: tuple[str, ...]
    """What happens to each entry, one line per entry."""
    entries: int = 0
    """The number of entries after the repair."""


def best_repair(
    file: StoreFile, find_copies: Callable[[StoreFile], Sequence[TextCopy]]
) -> Repair | None:
    """Repair a store from its own bytes and the newest intact copy; None if that is impossible."""
    mended = repair_bytes(file.data, file.store)
    if mended is not None and mended.lossless:
        why = text("{repair}; every entry is kept", repair=mended.description)
        return _repair(file, mended, why, lossless=True)
    copies = find_copies(file)
    newest = copies[0] if copies else None
    if mended is None:
        return _copied(file, newest) if newest else None
    both = _both(file, mended, newest) if newest else None
    why = text("{repair}; only intact entries are kept", repair=mended.description)
    return both or _repair(file, mended, why)


def _of(copy: TextCopy) -> str:
    """Name a copy, for the plan."""
    if copy.anywhere:
        return f"{copy.label} of {clock(copy.modified)}, perhaps from another home"
    return f"{copy.label} of {clock(copy.modified)}"


def _warned(file: StoreFile, why: str) -> str:
    """Add that users who were removed after the copy are approved again."""
    if file.store.kind != "approved":
        return why
    return f"{why}; users who have been removed since then are approved again"


def _copied(file: StoreFile, copy: TextCopy) -> Repair:
    """Replace a file of which nothing can be kept by a copy."""
    before = entries_by_name(file.values, file.store)
    empty = file.flaw is not None and file.flaw.kind == "empty"
    why = text("restore {copy}", copy=_of(copy))
    if not before and not empty:
        why = text("restore {copy}; nothing in the file is readable", copy=_of(copy))
    return _made(file, copy.data, _warned(file, why), before, ())


def _both(file: StoreFile, mended: RepairedStore, copy: TextCopy) -> Repair | None:
    """Combine what is left of the file with what only the copy has; None if it adds nothing."""
    from hermes_doctor.hermes.stores.damage import examine_bytes

    theirs = examine_bytes(copy.data, file.store).values
    data = _joined(file, mended.values, theirs, None if mended.cut_off else mended.lost)
    if data is None:
        return None
    why = text("{repair}, and add entries of {copy}", repair=mended.description, copy=_of(copy))
    before = entries_by_name(mended.values, file.store)
    return _made(file, data, _warned(file, why), before, mended.lost)


def _joined(
    file: StoreFile, mine: Any, theirs: Any, missing: tuple[str, ...] | None
) -> bytes | None:
    """Add the entries that only the other store has (`missing`, or all); None if there are none."""
    from hermes_doctor.hermes.stores.entries import merge_entries
    from hermes_doctor.hermes.stores.json_repairs import to_json

    try:
        values = merge_entries(mine, theirs, file.store, missing)
        data = to_json(values)
    except (ValueError, RecursionError):
        return None
    more = set(entries_by_name(values, file.store)) != set(entries_by_name(mine, file.store))
    return data if more else None


def _repair(file: StoreFile, mended: RepairedStore, why: str, *, lossless: bool = False) -> Repair:
    before = entries_by_name(mended.values, file.store)
    return _made(file, mended.data, why, before, mended.lost)._replace(lossless=lossless)


def _made(
    file: StoreFile, data: bytes, why: str, before: dict[str, Any], cut: tuple[str, ...]
) -> Repair:
    from hermes_doctor.hermes.stores.damage import examine_bytes

    after = entries_by_name(examine_bytes(data, file.store).values, file.store)
    head = f"{file.path.name}, {file.store.holds}:"
    lines = (head, *difference(before, after, cut, file.store))
    return Repair(data, why, lossless=False, lines=lines, entries=len(after))


def restore_set_aside(home: Home, file: StoreFile) -> Repair | None:
    """Add to an intact store what only its NAME.corrupt has; None if there is nothing to add.

    Hermes copies a store that it cannot read to NAME.corrupt and starts with an empty one.
    """
    from hermes_doctor.core.model import CouldNotLook
    from hermes_doctor.core.system.files import read
    from hermes_doctor.hermes.stores.damage import examine_bytes
    from hermes_doctor.hermes.stores.store_file import LIMIT

    aside = file.path.with_name(f"{file.path.name}.corrupt")
    try:
        data, snapshot = read(aside, LIMIT)
    except (FileNotFoundError, CouldNotLook):
        return None
    values, flaw = examine_bytes(data, file.store)
    mended = repair_bytes(data, file.store) if flaw else None
    values = mended.values if mended else values
    own = home.path.stat().st_uid
    if (
        not isinstance(values, dict)
        or (flaw and not mended)
        or snapshot.uid not in (own, file.snapshot.uid)
    ):
        return None
    union = _joined(file, file.values, values, None)
    if union is None:
        return None
    why = text("add entries of {copy}; every entry is kept", copy=aside.name)
    lost = mended.lost if mended else ()
    repair = _made(file, union, why, entries_by_name(file.values, file.store), lost)
    return repair._replace(lossless=True)
