"""Which repair of a damaged store loses least, and what it does to each entry."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hermes_doctor.stores.entries import difference, named
from hermes_doctor.stores.mending import Mended, mend
from hermes_doctor.values import NamedTuple

if TYPE_CHECKING:
    from hermes_doctor.home import Home
    from hermes_doctor.probes.copies import TextCopy
    from hermes_doctor.probes.stores import StoreFile


class Repair(NamedTuple):
    """A store as it would be afterwards."""

    data: bytes
    why: str
    lossless: bool
    """Nothing that Hermes or anybody could still read is gone with it."""
    lines: tuple[str, ...]
    """What becomes of each entry."""


def best(home: Home, file: StoreFile) -> Repair | None:
    """Its own bytes mended, unless a copy has all that is left and more; None: there is no way."""
    from hermes_doctor.probes import stores

    mended = mend(file.data, file.store)
    if mended is not None and mended.lossless:
        return _repair(file, mended, f"by itself, {mended.how}; every entry stays", lossless=True)
    copies = stores.sound_copies(home, file)
    newest = copies[0] if copies else None
    if mended is not None and not (newest and _covers(newest, mended, file)):
        return _repair(file, mended, f"by itself, {mended.how}; what is whole stays{_also(newest)}")
    if newest is None:
        return None
    left = mended.values if mended else file.values
    why = f"by {newest.label} of {newest.modified:%Y-%m-%d %H:%M} UTC, the newest that is sound"
    before = named(left, file.store)
    cut = mended.lost if mended else ()
    return _made(file, newest.data, why, before, cut)


def _covers(copy: TextCopy, mended: Mended, file: StoreFile) -> bool:
    """Whether a copy has every entry that is left, and more than that."""
    from hermes_doctor.stores.judging import judge

    theirs = named(judge(copy.data, file.store).values, file.store)
    return set(theirs) > set(named(mended.values, file.store))


def _also(copy: TextCopy | None) -> str:
    return f" (an older copy is {copy.label})" if copy else ""


def _repair(file: StoreFile, mended: Mended, why: str, *, lossless: bool = False) -> Repair:
    before = named(mended.values, file.store)
    return _made(file, mended.data, why, before, mended.lost)._replace(lossless=lossless)


def _made(
    file: StoreFile, data: bytes, why: str, before: dict[str, Any], cut: tuple[str, ...]
) -> Repair:
    from hermes_doctor.stores.judging import judge

    after = named(judge(data, file.store).values, file.store)
    head = f"{file.path.name}, {file.store.holds} one by one:"
    lines = (head, *difference(before, after, cut, file.store))
    return Repair(data, why, lossless=False, lines=lines)


def rejoin(home: Home, file: StoreFile) -> Repair | None:
    """A sound store with what only the file has that Hermes put aside as corrupt; or None.

    Hermes copies a store that it cannot read to NAME.corrupt and begins with an empty one.
    """
    from hermes_doctor.files import read
    from hermes_doctor.model import CouldNotLook
    from hermes_doctor.probes.stores import LIMIT
    from hermes_doctor.stores.judging import inside, judge

    aside = file.path.with_name(f"{file.path.name}.corrupt")
    try:
        data, taken = read(aside, LIMIT)
    except (FileNotFoundError, CouldNotLook):
        return None
    values, flaw = judge(data, file.store)
    mended = mend(data, file.store) if flaw else None
    values = mended.values if mended else values
    own = home.path.stat().st_uid
    if (
        not isinstance(values, dict)
        or (flaw and not mended)
        or taken.uid not in (own, file.snapshot.uid)
    ):
        return None
    joined = json.loads(json.dumps(file.values))
    for path in file.store.entries:
        for key, value in dict(inside(values, path) or {}).items():
            holder = joined
            for part in path:
                holder = holder.setdefault(part, {})
            holder.setdefault(key, value)
    before, after = named(file.values, file.store), named(joined, file.store)
    if set(after) == set(before):
        return None
    made = f"{json.dumps(joined, indent=2)}\n".encode()
    why = f"by itself and what only {aside.name} has; what is in it now stays"
    lines = (
        f"{file.path.name}, {file.store.holds} one by one:",
        *difference(before, after, mended.lost if mended else (), file.store),
    )
    return Repair(made, why, lossless=True, lines=lines)
