"""Read and examine the stores of a home."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.stores.catalogue import NONE, PART, WHOLE, Store, harmless_flaws, outcome, stores
from hermes_doctor.system.files import MEGABYTE, Snapshot, list_folder, read, read_tail

if TYPE_CHECKING:
    from hermes_doctor.file_copies import TextCopy
    from hermes_doctor.stores.damage import StoreFlaw

LIMIT = 16 * MEGABYTE
MOST = 200
"""The maximum number of files per pattern."""
SOME, END = 20, 4096
"""The number of transcripts and the bytes of each that a quick check reads."""


class StoreFile(NamedTuple):
    """A store file, and what is wrong with it."""

    store: Store
    path: Path
    name: str
    data: bytes
    snapshot: Snapshot
    values: Any
    flaw: StoreFlaw | None
    outcome: str
    """What the installed Hermes makes of it."""


class Stores(NamedTuple):
    """All store files of a home, and those that could not be read."""

    found: tuple[StoreFile, ...]
    unreadable: tuple[str, ...]

    def of(self, kind: str) -> StoreFile | None:
        """Return the first one of a kind."""
        return next((one for one in self.found if one.store.kind == kind), None)


def find(home: Home, release: tuple[int, ...] | None) -> Stores:
    """Read and examine every store of this home."""
    found: dict[Path, StoreFile] = {}
    doubts: list[str] = []
    for store in stores():
        for path in _places(home, store, doubts):
            if path in found:
                continue
            try:
                data, taken = read(path, LIMIT)
            except FileNotFoundError:
                continue
            except CouldNotLook as doubt:
                doubts.append(str(doubt))
                continue
            from hermes_doctor.stores.damage import examine_bytes

            values, flaw = examine_bytes(data, store, harmless_flaws(store.kind, release))
            said = _outcome(store, values, flaw, release)
            name = home.name_of(path)
            found[path] = StoreFile(store, path, name, data, taken, values, flaw, said)
    return Stores(tuple(found.values()), tuple(doubts))


def _outcome(
    store: Store, values: Any, flaw: StoreFlaw | None, release: tuple[int, ...] | None
) -> str:
    """Return what Hermes makes of a file; if it is read in order, a flaw costs what follows."""
    if flaw is None:
        return WHOLE
    from hermes_doctor.stores.damage import OF_ENTRIES

    said = outcome(store.kind, flaw.kind, release)
    single = flaw.kind in OF_ENTRIES and "stops" in store.says
    if said != NONE or not single or flaw.behind:
        return said
    notes = flaw.sound + sum(key.startswith("_") for key in values) == len(values)
    return WHOLE if notes else PART


def _places(home: Home, store: Store, doubts: list[str]) -> Iterator[Path]:
    for pattern in store.files:
        before, star, after = pattern.partition("*")
        if not star:
            yield home / pattern
            continue
        folder, _, prefix = before.rpartition("/")
        ending, slash, rest = after.partition("/")
        try:
            names = list_folder(home / folder)
        except CouldNotLook as doubt:
            doubts.append(str(doubt))
            continue
        fitting = [n for n in names if n.startswith(prefix) and n.endswith(ending)]
        for name in fitting[:MOST]:
            yield home / folder / name / rest if slash else home / folder / name


def intact_copies(home: Home, file: StoreFile) -> list[TextCopy]:
    """Return copies with at least one entry, newest first; harmless flaws are repaired."""
    from hermes_doctor.backup import copies
    from hermes_doctor.stores.damage import examine_bytes
    from hermes_doctor.stores.entries import entries_by_name
    from hermes_doctor.stores.json_repairs import repair_bytes

    found: dict[bytes, TextCopy] = {}
    for copy in copies.text_copies(home, file.name, LIMIT):
        values, flaw = examine_bytes(copy.data, file.store)
        if flaw is not None:
            mended = repair_bytes(copy.data, file.store)
            if mended is None or not mended.lossless:
                continue
            copy = copy._replace(data=mended.data)
            values = mended.values
        known = found.get(copy.data)
        if entries_by_name(values, file.store) and (
            known is None or known.modified < copy.modified
        ):
            found[copy.data] = copy
    return sorted(found.values(), key=lambda copy: copy.modified, reverse=True)


def count_invalid_transcript_lines(home: Home, *, deep: bool) -> list[tuple[str, int]]:
    """Count the invalid lines of transcripts; a quick check reads only the ends of the latest."""
    import json

    try:
        names = [n for n in list_folder(home / "sessions") if n.endswith(".jsonl")]
    except CouldNotLook:
        return []
    found = []
    for name in names if deep else names[-SOME:]:
        try:
            data, _ = read_tail(home / "sessions" / name, LIMIT if deep else END)
        except (FileNotFoundError, CouldNotLook):
            continue
        bad = 0
        for line in data.split(b"\n"):
            try:
                bad += bool(line.strip()) and not json.loads(line)
            except (ValueError, RecursionError):
                bad += 1
        if bad:
            found.append((f"sessions/{name}", bad))
    return found
