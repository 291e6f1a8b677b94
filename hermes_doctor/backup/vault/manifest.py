"""Read and write the manifest of a backup; its seal reveals any changed bit.

Entries that this tool would not have written are refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

from hermes_doctor.backup.vault.unreadable_files import MissingFile, missing_from_manifest
from hermes_doctor.core.lazy import EMPTY, NamedTuple
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system.files import Snapshot


class BackupEntry(NamedTuple):
    """One path in a backup, with everything needed to restore it exactly."""

    path: str
    """Relative to the home, or absolute for a file that a symlink of the home leads to."""
    kind: str
    """file, symlink, absent, or mode (only mode and owner matter; no copy is kept)."""
    size: int = 0
    mode: int = 0
    uid: int = -1
    gid: int = -1
    mtime_ns: int = 0
    sha256: str | None = None
    """The digest of its content: plain, or by chunks (`digests`)."""
    target: str | None = None
    xattrs: Mapping[str, str] = EMPTY
    method: str = "bytes"
    """bytes (copied as it was) or sqlite (copied through SQLite from a database in use)."""
    integrity: str | None = None
    """SQLite's verdict on a database that was in use or is one of Hermes' own."""
    blocks: bool = False
    """Stored as an earlier whole copy and the blocks that differ from it (`blocks`)."""
    seen: tuple[int, ...] = ()
    """When the file was read, and the marks that identify its version (`unchanged.marks`)."""
    read_at: int = 0
    """When its copy was last read back, in nanoseconds."""
    examined_at: int = 0
    """When SQLite last examined it."""
    pieces: str = ""
    """The known digests of the chunks of its whole copy, or of its base."""

    def alone(self) -> BackupEntry:
        """The entry for a whole copy outside the vault, which shares nothing."""
        return self._replace(blocks=False, seen=(), pieces="")


def can_be_names(text: str) -> bool:
    """Whether a file system could have names with these characters."""
    try:
        return b"\0" not in text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False


def entries_of(documents: Iterable[Mapping[str, Any]]) -> tuple[BackupEntry, ...]:
    """Make entries from JSON objects; raise ValueError unless all fields are valid.

    All values of one field are checked together, which is faster: a home has thousands of entries.
    """
    every = [{**_USUAL, **fields} for fields in documents]
    if not every:
        return ()
    for fields in every:
        fields["seen"] = tuple(fields["seen"])
    entries = tuple(map(BackupEntry._make, map(_FIELDS, every)))
    held = dict(zip(BackupEntry._fields, zip(*entries, strict=True), strict=True))
    names: tuple[str, ...] = held["path"]
    if (
        {len(fields) for fields in every} != {len(held)}  # an entry has an unknown field
        or any(set(map(type, held[name])) - _TYPES[kind] for name, kind in _ANNOTATIONS.items())
        or {type(value) for seen in set(held["seen"]) for value in seen} - {int}
        or set(held["kind"]) - {"file", "symlink", "absent", "mode"}
        or any(not least <= one <= most for name, least, most in _RANGES for one in set(held[name]))
        or any(abs(number) > MOST for seen in set(held["seen"]) for number in seen)
        or not all(names)
        or any(".." in name.split("/") for name in names if ".." in name)
        or not can_be_names("".join((*names, *filter(None, held["target"]))))
        or not all(_are_attributes(documents) for documents in held["xattrs"] if documents)
    ):
        raise ValueError("not an entry")
    return entries


_FIELDS = itemgetter(*BackupEntry._fields)
_ANNOTATIONS: Mapping[str, str] = BackupEntry.__annotations__
MOST = 2**63 - 1
_RANGES = (
    ("size", 0, MOST),
    ("mode", 0, 0o777),  # a forged manifest must not make root set a user id bit
    ("uid", -1, 2**32 - 2),
    ("gid", -1, 2**32 - 2),
    ("mtime_ns", -MOST, MOST),
    ("read_at", 0, MOST),
    ("examined_at", 0, MOST),
)
"""The valid ranges of numbers; system calls raise OverflowError for others."""
_USUAL = BackupEntry._field_defaults
_TYPES: Mapping[str, set[type]] = {
    "str": {str},
    "int": {int},
    "bool": {bool},
    "str | None": {str, type(None)},
    "tuple[int, ...]": {tuple},
    "Mapping[str, str]": {dict, type(EMPTY)},
}
"""By the annotation of a field: the types that its values may have."""


def _are_attributes(attributes: Mapping[str, object]) -> bool:
    """Whether these are extended attributes of a user, not `security.` or `trusted.` ones."""
    texts = all(isinstance(text, str) for text in attributes.values())  # names are, in JSON
    return texts and not any(name.startswith(("security.", "trusted.")) for name in attributes)


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
        if isinstance(known, int):
            return known
        return sum(entry.size for entry in self.entries if entry.kind == "file")

    def entry(self, path: str) -> BackupEntry | None:
        """The entry of one path, or None."""
        find = getattr(self.entries, "find", None)
        if find is not None:
            backup_entry: BackupEntry | None = find(path)
            return backup_entry
        return next((entry for entry in self.entries if entry.path == path), None)

    @property
    def sound(self) -> bool:
        """Whether every database that SQLite checked was sound when it was copied."""
        known = getattr(self.entries, "sound", None)
        if isinstance(known, bool):
            return known
        return all(entry.integrity in (None, "ok") for entry in self.entries)

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
    taken_over = {id(entry): line for entry, line in known}
    fresh = iter(entry_lines([entry for entry in backup.entries if id(entry) not in taken_over]))
    each = [taken_over.get(id(entry)) or next(fresh) for entry in backup.entries]
    lines = b",\n".join(each) + b"\n]}\n"
    closing = hashlib.sha256(head_of(document) + lines).hexdigest()
    return head_of(document | {"seal": closing}) + lines


def head_document(backup: Backup) -> dict[str, Any]:
    """The head of the manifest: everything except the entries and the seal."""
    document: dict[str, Any] = {name: getattr(backup, name) for name in _PLAIN_FIELDS}
    document |= {"schema": SCHEMA, "created_at": backup.created_at.isoformat()}
    document |= {"left_out": list(backup.left_out)}
    if backup.missing:
        document["missing"] = [file.document for file in backup.missing]
    return document


_PLAIN_FIELDS = ("id", "home", "reason", "tool", "hermes", "whole", "shares")
"""The fields of a backup that are written as they are."""
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
        backup = backup_of(folder, document, entries)
        return backup._replace(lines=lines if len(lines) == len(entries) else ())
    except DAMAGE:
        raise damaged_manifest(folder) from None


def damaged_manifest(folder: Path) -> Trouble:
    """Make the error for a damaged manifest."""
    manifest = folder / MANIFEST
    return Trouble(
        "The manifest of backup {id} is damaged ({manifest}).", id=folder.name, manifest=manifest
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
    created = datetime.fromisoformat(document["created_at"])
    if created.tzinfo is None or not 1971 <= created.year <= 9998:
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


def entry_lines(entries: Sequence[BackupEntry]) -> list[bytes]:
    """Each entry as a line of JSON, without fields that have their default.

    All are converted in one call, which is fast. The separator between two entries cannot occur in
    the text of an entry, because quotes are escaped there.
    """
    usual = [BackupEntry._field_defaults.get(name, ...) for name in BackupEntry._fields]
    fields = [zip(BackupEntry._fields, entry, usual, strict=True) for entry in entries]
    every = [{name: value for name, value, known in entry if value != known} for entry in fields]
    text = json.dumps(every, ensure_ascii=True, default=dict)[1:-1]
    return text.replace('}, {"path": ', '}\n{"path": ').encode("ascii").split(b"\n")


def _formerly(document: Mapping[str, Any]) -> bytes:
    """The manifest in the former format, before each entry had its own line."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=True, indent=1)
    return text.encode("ascii") + b"\n"
