"""Read and examine the stores of a home, and find chats that the installed Hermes drops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE, Snapshot, list_folder, read, read_tail
from hermes_doctor.hermes.knowledge import parse_release
from hermes_doctor.hermes.knowledge.releases import load_knowledge
from hermes_doctor.hermes.stores.catalogue import (
    NONE,
    PART,
    WHOLE,
    Store,
    harmless_flaws,
    outcome,
    stores,
)

if TYPE_CHECKING:
    from hermes_doctor.hermes.stores.damage import StoreFlaw


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
        return next(
            (store_file for store_file in self.found if store_file.store.kind == kind), None
        )


def find_stores(home: Home, release: tuple[int, ...] | None) -> Stores:
    """Read and examine every store of this home."""
    found: dict[Path, StoreFile] = {}
    doubts: list[str] = []
    for store in stores():
        for path in _places(home, store, doubts):
            if path in found:
                continue
            try:
                data, snapshot = read(path, LIMIT)
            except FileNotFoundError:
                continue
            except CouldNotLook as doubt:
                doubts.append(str(doubt))
                continue
            from hermes_doctor.hermes.stores.damage import examine_bytes

            values, flaw = examine_bytes(data, store, harmless_flaws(store.kind, release))
            said = _outcome(store, values, flaw, release)
            name = home.name_of(path)
            found[path] = StoreFile(store, path, name, data, snapshot, values, flaw, said)
    return Stores(tuple(found.values()), tuple(doubts))


def _outcome(
    store: Store, values: Any, flaw: StoreFlaw | None, release: tuple[int, ...] | None
) -> str:
    """Return what Hermes makes of a file; if it is read in order, a flaw costs what follows."""
    if flaw is None:
        return WHOLE
    from hermes_doctor.hermes.stores.damage import OF_ENTRIES

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


_COMPLETE = (0, 16)
"""Before this release, the platforms depend on how Hermes was installed."""
_ALWAYS = "local"


class UnknownChatPlatform(NamedTuple):
    """A platform that has chats although the release does not know it."""

    name: str
    chats: int
    since: str | None
    """The first release that has it; None if it was never part of Hermes."""


def unknown_chat_platforms(values: Any, release: tuple[int, ...]) -> list[UnknownChatPlatform]:
    """Return the platforms of chats that this release does not know."""
    if not isinstance(values, dict):
        return []
    known = load_knowledge("enabling")
    found = []
    for name, count in Counter(filter(None, map(_chat_platform, values.values()))).items():
        if name not in known:
            found.append(UnknownChatPlatform(name, count, None))
            continue
        since = min((one for form in known[name] for one in form["releases"]), key=parse_release)
        if max(release, _COMPLETE) < parse_release(since):
            found.append(UnknownChatPlatform(name, count, since))
    return found


def _chat_platform(entry: object) -> str | None:
    """Return the platform of a chat, if Hermes would look it up and not fail earlier."""
    origin = entry.get("origin") if isinstance(entry, dict) else None
    if not isinstance(origin, dict) or "chat_id" not in origin:
        return None
    name = origin.get("platform")
    plain = name.strip().lower() if isinstance(name, str) else _ALWAYS
    return plain if plain != _ALWAYS else None
