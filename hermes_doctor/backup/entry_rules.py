"""Refuse entries of a manifest that this tool would not have written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

from hermes_doctor.backup.entry import BackupEntry, can_be_names
from hermes_doctor.lazy import EMPTY


def entries_of(found: Iterable[Mapping[str, Any]]) -> tuple[BackupEntry, ...]:
    """Make entries from JSON objects; raise ValueError unless all fields are valid.

    All values of one field are checked together, which is faster: a home has thousands of entries.
    """
    every = [{**_USUAL, **fields} for fields in found]
    if not every:
        return ()
    for fields in every:
        fields["seen"] = tuple(fields["seen"])
    entries = tuple(map(BackupEntry._make, map(_FIELDS, every)))
    held = dict(zip(BackupEntry._fields, zip(*entries, strict=True), strict=True))
    names: tuple[str, ...] = held["path"]
    if (
        {len(fields) for fields in every} != {len(held)}  # an entry has an unknown field
        or any(set(map(type, values)) - _TYPES[name] for name, values in held.items())
        or {type(value) for seen in set(held["seen"]) for value in seen} - {int}
        or set(held["kind"]) - {"file", "symlink", "absent", "mode"}
        or any(not least <= one <= most for name, least, most in _RANGES for one in set(held[name]))
        or any(abs(number) > MOST for seen in set(held["seen"]) for number in seen)
        or not all(names)
        or any(".." in name.split("/") for name in names if ".." in name)
        or not can_be_names("".join((*names, *filter(None, held["target"]))))
        or not all(_are_attributes(found) for found in held["xattrs"] if found)
    ):
        raise ValueError("not an entry")
    return entries


_FIELDS = itemgetter(*BackupEntry._fields)
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
_TEXT: set[type] = {str}
_NUMBER: set[type] = {int}
_MAYBE: set[type] = {str, type(None)}
_TYPES: Mapping[str, set[type]] = {
    "path": _TEXT,
    "kind": _TEXT,
    "size": _NUMBER,
    "mode": _NUMBER,
    "uid": _NUMBER,
    "gid": _NUMBER,
    "mtime_ns": _NUMBER,
    "sha256": _MAYBE,
    "target": _MAYBE,
    "xattrs": {dict, type(EMPTY)},
    "method": _TEXT,
    "integrity": _MAYBE,
    "blocks": {bool},
    "seen": {tuple},
    "read_at": _NUMBER,
    "examined_at": _NUMBER,
    "pieces": _TEXT,
}


def _are_attributes(found: Mapping[str, object]) -> bool:
    """Whether these are extended attributes of a user, not `security.` or `trusted.` ones."""
    texts = all(isinstance(text, str) for text in found.values())  # names are, in JSON
    return texts and not any(name.startswith(("security.", "trusted.")) for name in found)
