"""Read and write the manifest of a backup; its seal reveals any changed bit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from hermes_doctor.backup.entry import BackupEntry, can_be_names
from hermes_doctor.backup.entry_rules import entries_of
from hermes_doctor.backup.unreadable_files import MissingFile, missing_from_manifest
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import Trouble
from hermes_doctor.system.files import Snapshot

SCHEMA = "hermes-doctor/backup/1"
MANIFEST = "manifest.json"
OPENING = b', "entries": [\n'
"""Ends the head of the manifest."""
BASE, CHANGED = "base", "changed"
"""The file names of the two parts of a copy that is stored in blocks."""


class Backup(NamedTuple):
    """One backup: the head of its manifest and its entries."""

    folder: Path
    id: str
    created_at: datetime
    home: str
    reason: str
    hermes: str | None
    tool: str
    entries: Sequence[BackupEntry]
    whole: bool = False
    """It covers everything in the home, not only what one run was about to change."""
    shares: str | None = None
    """The earlier backup with which it shares copies by hard links."""
    left_out: tuple[str, ...] = ()
    """The operator's choice by `--include` and `--exclude`."""
    missing: tuple[MissingFile, ...] = ()
    """Paths that should be in it but could not be read; then it is not `whole`."""
    lines: tuple[bytes, ...] = ()
    """The entries as lines of the manifest, if it was read from one."""
    damaged_before: tuple[tuple[str, str], ...] = ()
    """Damaged copies found while it was made: the earlier backup's id and the path. These files
    were saved again."""

    @property
    def of_home(self) -> bool:
        """Whether it is a backup of the home, not only of the paths that a run changed."""
        return bool(self.whole or self.left_out or self.missing)

    @property
    def size(self) -> int:
        """The bytes of all files in it."""
        known = getattr(self.entries, "size", None)
        return (
            known
            if isinstance(known, int)
            else sum(entry.size for entry in self.entries if entry.kind == "file")
        )

    def entry(self, path: str) -> BackupEntry | None:
        """The entry of one path, or None."""
        find = getattr(self.entries, "find", None)
        if find is not None:
            found: BackupEntry | None = find(path)
            return found
        return next((one for one in self.entries if one.path == path), None)

    @property
    def sound(self) -> bool:
        """Whether every database that SQLite checked was sound when it was copied."""
        known = getattr(self.entries, "sound", None)
        return (
            known
            if isinstance(known, bool)
            else all(entry.integrity in (None, "ok") for entry in self.entries)
        )

    def copy_of(self, entry: BackupEntry) -> Path:
        """The path of an entry's copy; a folder with its parts if it is stored in blocks."""
        return place_of(self.folder, entry.path, blocks=entry.blocks)


def place_of(folder: Path, name: str, *, blocks: bool = False) -> Path:
    """The place for the copy of a path in the folder of a backup."""
    return Path(f"{folder}/{relative_place(name, blocks=blocks)}")


def relative_place(name: str, *, blocks: bool = False) -> str:
    """The place for the copy of a path, relative to the folder of a backup."""
    kind = "outside" if name.startswith("/") else "files"
    return f"{'blocks/' if blocks else ''}{kind}/{name.lstrip('/')}"


class BackupSource(NamedTuple):
    """One path to back up."""

    name: str
    """The name of its entry."""
    path_str: str
    """Its path as a string, because making a Path takes longer than saving many a small file."""
    expect: Snapshot
    content: bool = True
    """False if only mode and owner will change: no second copy of a secret is made."""
    live: bool = False
    """A database that a process has open: it is copied through SQLite."""
    patient: bool = False
    """Copy its current state; retry if it changes during the copy. A run never uses this."""

    @property
    def path(self) -> Path:
        """The place as a Path."""
        return Path(self.path_str)


def seal(backup: Backup, earlier: Backup | None = None) -> bytes:
    """Make the bytes of the manifest, sealed with the hash of all of it.

    An entry taken over from the earlier backup is written with the same line.
    """
    document = head_document(backup)
    known = zip(earlier.entries, earlier.lines, strict=False) if earlier and earlier.lines else ()
    lines = _lines(backup.entries, {id(entry): line for entry, line in known})
    closing = hashlib.sha256(head_of(document) + lines).hexdigest()
    return head_of(document | {"seal": closing}) + lines


def head_document(backup: Backup) -> dict[str, Any]:
    """The head of the manifest: everything except the entries and the seal."""
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
"""The exceptions that reading a damaged manifest raises."""


def parse(folder: Path, data: bytes) -> Backup:
    """Read a manifest; raise Trouble if any bit of it was changed."""
    try:
        document: dict[str, Any] = json.loads(data)
        if not _is_sealed(document, data):
            raise ValueError("seal")
        entries = entries_of(document["entries"])
        lines = tuple(data.partition(b"[\n")[2].removesuffix(b"\n]}\n").split(b",\n"))
        made = backup_of(folder, document, entries)
        return made._replace(lines=lines if len(lines) == len(entries) else ())
    except DAMAGE:
        raise damaged_manifest(folder) from None


def damaged_manifest(folder: Path) -> Trouble:
    """Make the error for a damaged manifest."""
    return Trouble(
        text(
            "The manifest of backup {id} is damaged ({manifest}).",
            id=folder.name,
            manifest=folder / MANIFEST,
        )
    )


def backup_of(folder: Path, document: Mapping[str, Any], entries: Sequence[BackupEntry]) -> Backup:
    """Make the backup from the head of a manifest and its entries."""
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
        missing=missing_from_manifest(document.get("missing", ())),
    )


def _insist(document: Mapping[str, Any]) -> None:
    """Raise ValueError if the fields of a head are not what this tool writes."""
    texts = [document[name] for name in ("id", "created_at", "home", "reason", "tool")]
    texts += [text for text in (document["hermes"], document.get("shares")) if text is not None]
    texts += document.get("left_out", ())
    if not all(isinstance(text, str) for text in texts) or not can_be_names("".join(texts)):
        raise ValueError("not a text")
    made = datetime.fromisoformat(document["created_at"])
    if made.tzinfo is None or not 1971 <= made.year <= 9998:
        raise ValueError("not a time")


def _is_sealed(document: Mapping[str, Any], data: bytes) -> bool:
    """Whether the seal is right; the bytes after the head are hashed as they are, not rewritten."""
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
    """The bytes of the head, up to the start of the entries."""
    head = json.dumps(rest, sort_keys=True, ensure_ascii=True)
    return head[:-1].encode("ascii") + OPENING


def _lines(entries: Sequence[BackupEntry], known: Mapping[int, bytes]) -> bytes:
    """The bytes of the entries, one line each."""
    fresh = iter(entry_lines([entry for entry in entries if id(entry) not in known]))
    found = [known[id(entry)] if id(entry) in known else next(fresh) for entry in entries]
    return b",\n".join(found) + b"\n]}\n"


def entry_lines(entries: Sequence[BackupEntry]) -> list[bytes]:
    """Each entry as a line of JSON, without fields that have their default.

    All are converted in one call, which is fast. The separator between two entries cannot occur in
    the text of an entry, because quotes are escaped there.
    """
    usual = [BackupEntry._field_defaults.get(name, ...) for name in BackupEntry._fields]
    every = [
        {
            n: value
            for n, value, known in zip(BackupEntry._fields, entry, usual, strict=True)
            if value != known
        }
        for entry in entries
    ]
    text = json.dumps(every, ensure_ascii=True, default=dict)[1:-1]
    return text.replace('}, {"path": ', '}\n{"path": ').encode("ascii").split(b"\n")


def _formerly(document: Mapping[str, Any]) -> bytes:
    """The manifest in the former format, before each entry had its own line."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=True, indent=1)
    return text.encode("ascii") + b"\n"
