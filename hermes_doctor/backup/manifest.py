"""What is written down of a backup: each path as it was, sealed so that one flipped bit shows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from hermes_doctor.backup.entry import Entry, can_be_names
from hermes_doctor.backup.entry_rules import entries_of
from hermes_doctor.backup.unreadable_files import Missing, of_document
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import Trouble
from hermes_doctor.system.files import Snapshot

SCHEMA = "hermes-doctor/backup/1"
MANIFEST = "manifest.json"
OPENING = b', "entries": [\n'
"""The end of the head."""
BASE, CHANGED = "base", "changed"
"""The two parts of a copy that is kept in blocks."""


class Backup(NamedTuple):
    """One backup of the vault."""

    folder: Path
    id: str
    created_at: datetime
    home: str
    reason: str
    hermes: str | None
    tool: str
    entries: Sequence[Entry]
    whole: bool = False
    """Of everything in the home, not only of what one run was about to change."""
    shares: str | None = None
    """The backup before it, whose copies it has names of its own for."""
    left_out: tuple[str, ...] = ()
    """What the operator did not want in it, or only wanted: `--include` and `--exclude`."""
    missing: tuple[Missing, ...] = ()
    """What should be in it and could not be read; then it is not `whole`."""
    lines: tuple[bytes, ...] = ()
    """The entries as they are written, where they were read."""
    damaged_before: tuple[tuple[str, str], ...] = ()
    """When it was made: which backup before it holds a copy that is not what was saved, and of
    what. Here that was saved anew."""

    @property
    def of_home(self) -> bool:
        """Whether it is a backup of the home, and not of the few paths that a run changed."""
        return bool(self.whole or self.left_out or self.missing)

    @property
    def size(self) -> int:
        """Bytes of all copies."""
        known = getattr(self.entries, "size", None)
        return (
            known
            if isinstance(known, int)
            else sum(entry.size for entry in self.entries if entry.kind == "file")
        )

    def entry(self, path: str) -> Entry | None:
        """The entry of one path."""
        find = getattr(self.entries, "find", None)
        if find is not None:
            found: Entry | None = find(path)
            return found
        return next((one for one in self.entries if one.path == path), None)

    @property
    def sound(self) -> bool:
        """Whether every database was sound when it was copied, as far as SQLite was asked."""
        known = getattr(self.entries, "sound", None)
        return (
            known
            if isinstance(known, bool)
            else all(entry.integrity in (None, "ok") for entry in self.entries)
        )

    def copy_of(self, entry: Entry) -> Path:
        """Where the copy of an entry lies; a folder with its parts if it is kept in blocks."""
        return place_of(self.folder, entry.path, blocks=entry.blocks)


def place_of(folder: Path, name: str, *, blocks: bool = False) -> Path:
    """Where the copy of a path lies in the folder of a backup."""
    return Path(f"{folder}/{within(name, blocks=blocks)}")


def within(name: str, *, blocks: bool = False) -> str:
    """The same, seen from that folder."""
    kind = "outside" if name.startswith("/") else "files"
    return f"{'blocks/' if blocks else ''}{kind}/{name.lstrip('/')}"


class Source(NamedTuple):
    """One path to back up."""

    name: str
    """As an entry has it."""
    place: str
    """Where it lies: a path, which takes longer to make than to save many a file."""
    expect: Snapshot
    content: bool = True
    """False when only mode and owner will change: no second copy of a secret is made."""
    live: bool = False
    """A database that some process has open: copied through SQLite."""
    patient: bool = False
    """Copy it as it is by now, and again if it is written meanwhile; a run never does that."""

    @property
    def path(self) -> Path:
        """The same as a path."""
        return Path(self.place)


def seal(backup: Backup, earlier: Backup | None = None) -> bytes:
    """The manifest as bytes, closed with the hash of all of it.

    An entry that is one of an earlier backup's is written as it was there.
    """
    document = head_document(backup)
    known = zip(earlier.entries, earlier.lines, strict=False) if earlier and earlier.lines else ()
    lines = _lines(backup.entries, {id(entry): line for entry, line in known})
    closing = hashlib.sha256(head_of(document) + lines).hexdigest()
    return head_of(document | {"seal": closing}) + lines


def head_document(backup: Backup) -> dict[str, Any]:
    """All that is written of a backup but its entries and the seal."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "id": backup.id,
        "created_at": backup.created_at.isoformat(),
        "home": backup.home,
        "reason": backup.reason,
        "tool": backup.tool,
        "hermes": backup.hermes,
        "whole": backup.whole,
        "shares": backup.shares,
        "left_out": list(backup.left_out),
    }
    if backup.missing:
        document["missing"] = [one.document for one in backup.missing]
    return document


DAMAGE = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)
"""What reading a damaged manifest raises."""


def parse(folder: Path, data: bytes) -> Backup:
    """A manifest read back; one flipped bit anywhere in it is noticed."""
    try:
        document: dict[str, Any] = json.loads(data)
        if not _is_sealed(document, data):
            raise ValueError("seal")
        entries = entries_of(document["entries"])
        lines = tuple(data.partition(b"[\n")[2].removesuffix(b"\n]}\n").split(b",\n"))
        made = backup_of(folder, document, entries)
        return made._replace(lines=lines if len(lines) == len(entries) else ())
    except DAMAGE:
        raise damaged(folder) from None


def damaged(folder: Path) -> Trouble:
    """What to say of a manifest that cannot be relied on."""
    return Trouble(f"The manifest of backup {folder.name} is damaged ({folder / MANIFEST}).")


def backup_of(folder: Path, document: Mapping[str, Any], entries: Sequence[Entry]) -> Backup:
    """The backup that the head of a manifest tells of."""
    _insist(document)
    return Backup(
        folder=folder,
        id=document["id"],
        created_at=datetime.fromisoformat(document["created_at"]),
        home=document["home"],
        reason=document["reason"],
        hermes=document["hermes"],
        tool=document["tool"],
        entries=entries,
        whole=document.get("whole") is True,
        shares=document.get("shares"),
        left_out=tuple(document.get("left_out", ())),
        missing=of_document(document.get("missing", ())),
    )


def _insist(document: Mapping[str, Any]) -> None:
    """Refuse a head whose fields are not what this tool writes."""
    texts = [document[name] for name in ("id", "created_at", "home", "reason", "tool")]
    texts += [text for text in (document["hermes"], document.get("shares")) if text is not None]
    texts += document.get("left_out", ())
    if not all(isinstance(text, str) for text in texts) or not can_be_names("".join(texts)):
        raise ValueError("not a text")
    made = datetime.fromisoformat(document["created_at"])
    if made.tzinfo is None or not 1971 <= made.year <= 9998:
        raise ValueError("not a time")


def _is_sealed(document: Mapping[str, Any], data: bytes) -> bool:
    """By the bytes themselves: those after the head are never read and written again to compare."""
    rest = {name: value for name, value in document.items() if name != "entries"}
    head = head_of(rest)
    if data.startswith(head):
        closing = rest.pop("seal")
        sealed = hashlib.sha256(head_of(rest))
        sealed.update(memoryview(data)[len(head) :])
        return bool(closing == sealed.hexdigest())
    opened = {name: value for name, value in document.items() if name != "seal"}
    closing = hashlib.sha256(_formerly(opened)).hexdigest()
    return bool(document["seal"] == closing) and _formerly(document) == data


def head_of(rest: Mapping[str, Any]) -> bytes:
    """All but the entries, up to where they begin."""
    head = json.dumps(rest, sort_keys=True, ensure_ascii=True)
    return head[:-1].encode("ascii") + OPENING


def _lines(entries: Sequence[Entry], known: Mapping[int, bytes]) -> bytes:
    """An entry a line, which can be read."""
    fresh = iter(written([entry for entry in entries if id(entry) not in known]))
    found = [known[id(entry)] if id(entry) in known else next(fresh) for entry in entries]
    return b",\n".join(found) + b"\n]}\n"


def written(entries: Sequence[Entry]) -> list[bytes]:
    """Each entry by itself, without what is as usual; all in one go, which is quick.

    Where one ends and the next begins no text in an entry can look like: there its quotes would
    be escaped.
    """
    usual = [Entry._field_defaults.get(name, ...) for name in Entry._fields]
    every = [
        {
            n: value
            for n, value, known in zip(Entry._fields, entry, usual, strict=True)
            if value != known
        }
        for entry in entries
    ]
    text = json.dumps(every, ensure_ascii=True, default=dict)[1:-1]
    return text.replace('}, {"path": ', '}\n{"path": ').encode("ascii").split(b"\n")


def _formerly(document: Mapping[str, Any]) -> bytes:
    """The same as it was written before entries had lines of their own."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=True, indent=1)
    return text.encode("ascii") + b"\n"
