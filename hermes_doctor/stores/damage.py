"""Examine the bytes of a store and find its first flaw."""

from __future__ import annotations

import codecs
import json
from collections.abc import Container, Iterator
from typing import Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.stores.catalogue import ANY, LIST, Store
from hermes_doctor.stores.fields import FIELD, LEFT, ORIGIN, field_faults

BOM, PADDING, TORN, TAIL, CONTROL = "bom", "padding", "torn", "tail", "control"
EMPTY, BINARY, NULL, BARE, TEXT, NUMBER = "empty", "binary", "null", "list", "text", "number"
WITHOUT, HOLDER, ENTRY, TWICE, DEEP = "without", "holder", "entry", "twice", "deep"
OF_ENTRIES = {
    ENTRY: "are not objects",
    FIELD: "have a field of the wrong type",
    ORIGIN: "have an invalid origin",
    LEFT: "lack a field that Hermes needs",
}
"""The flaws of single entries, the most costly first."""
_BLANKS = b" \t\r\n"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class StoreFlaw(NamedTuple):
    """One thing that is wrong with a file."""

    kind: str
    what: str
    """For the user; contains none of the file's own text."""
    sound: int = 0
    """The number of entries without a flaw."""
    behind: int = 0
    """How many of these come after the first at which some releases stop."""


class ExaminedStore(NamedTuple):
    """The values of a store, and its flaw."""

    values: Any
    """None if nothing can be read without a repair."""
    damage: StoreFlaw | None


def examine_bytes(data: bytes, store: Store, harmless: Container[str] = ()) -> ExaminedStore:
    """Parse these bytes as Hermes does, and return the first flaw that would affect it.

    The kinds in `harmless` are not flaws for the given release.
    """
    if not data.strip(_BLANKS):
        return ExaminedStore(None, StoreFlaw(EMPTY, "empty"))
    if not data.strip(b"\0" + _BLANKS):
        return ExaminedStore(None, StoreFlaw(EMPTY, f"contains only {len(data):,} NUL bytes"))
    marked = data.startswith(codecs.BOM_UTF8)
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        kind = (
            "encoded as UTF-16" if data.startswith(_UTF16) else f"byte {error.start:,} is not UTF-8"
        )
        return ExaminedStore(None, StoreFlaw(BINARY, kind))
    found = _parsed(text)
    if found.damage is None:
        flaws = (one for one in _shape(found.values, store) if one.kind not in harmless)
        found = ExaminedStore(found.values, next(flaws, None))
    if found.damage is None and marked:
        return ExaminedStore(
            found.values, StoreFlaw(BOM, "its first three bytes are a byte order mark")
        )
    return found


def _parsed(text: str) -> ExaminedStore:
    try:
        return _decoded(text)
    except RecursionError:
        return ExaminedStore(None, StoreFlaw(DEEP, "it is nested too deeply"))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        return ExaminedStore(None, StoreFlaw(TORN, f"{place}: not valid JSON from here"))
    except ValueError:
        return ExaminedStore(None, StoreFlaw(DEEP, "it contains a number that is too long"))


def _decoded(text: str) -> ExaminedStore:
    """Parse a text and what surrounds it; JSONDecodeError if nothing can be read."""
    try:
        return ExaminedStore(json.loads(text), None)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
    try:
        values = json.loads(text, strict=False)
        return ExaminedStore(
            values, StoreFlaw(CONTROL, f"{place}: a control character inside a text")
        )
    except json.JSONDecodeError:
        pass
    except (ValueError, RecursionError):  # Hermes, whose parser is strict, does not get that far
        return ExaminedStore(None, StoreFlaw(TORN, f"{place}: not valid JSON from here"))
    bare = text.rstrip("\0")
    if bare != text:
        inner = _parsed(bare)
        count = len(text) - len(bare)
        if inner.damage is None:
            return ExaminedStore(
                inner.values, StoreFlaw(PADDING, f"{count:,} NUL bytes after the end")
            )
        return ExaminedStore(None, StoreFlaw(TORN, f"cut off, then {count:,} NUL bytes"))
    values, end = json.JSONDecoder(strict=False).raw_decode(text.lstrip())
    return ExaminedStore(
        values, StoreFlaw(TAIL, f"{len(text.lstrip()) - end:,} characters after the end")
    )


def _shape(values: Any, store: Store) -> Iterator[StoreFlaw]:
    """Yield what is wrong with the structure of valid JSON, the most costly first."""
    if not has_type(values, store.top):
        yield _top(values, store)
        return
    odd = [path[0] for path in store.entries if path and _odd_holder(values, path[0], store)]
    held = not store.one_of or any(_holds(values, key, store) for key in store.one_of)
    if values and not held and (not odd or len(store.entries) > 1):
        yield StoreFlaw(WITHOUT, f"{' or '.join(store.one_of)} is missing")
    elif odd:
        kind = "a list" if store.inside == LIST else "an object"
        yield StoreFlaw(HOLDER, f"{odd[0]} is not {kind}")
    else:
        yield from _of_entries(raw_entries(values, store), store)


def _top(values: Any, store: Store) -> StoreFlaw:
    wanted = "a list" if store.top == LIST else "an object"
    what = f"the file contains {_name(values)}, not {wanted}"
    if values is None:
        return StoreFlaw(NULL, "contains only `null`")
    if isinstance(values, dict | list):
        return StoreFlaw(BARE, what)
    return StoreFlaw(TEXT if isinstance(values, str) else NUMBER, what)


def _of_entries(entries: list[Any], store: Store) -> Iterator[StoreFlaw]:
    """Yield the flaws of single entries."""
    faults = [
        {*field_faults(one, store).values()} if has_type(one, store.entry) else {ENTRY}
        for one in entries
    ]
    sound = sum(not fault for fault in faults)
    stops = next((number for number, fault in enumerate(faults) if fault - {LEFT}), len(faults))
    behind = sum(not fault for fault in faults[stops:])
    for kind, words in OF_ENTRIES.items():
        count = sum(kind in fault for fault in faults)
        if count:
            yield StoreFlaw(kind, f"{count} of its entries {words}", sound, behind)
    count = len(duplicate_ids(entries, store))
    if count:
        what = f"{count} of its entries have the id of another entry"
        yield StoreFlaw(TWICE, what, sound - count)


def duplicate_ids(entries: list[Any], store: Store) -> list[int]:
    """Return the positions of enabled entries that have the id of an earlier one."""
    if "id" not in store.needs:
        return []
    ids = [str(one.get("id")) if isinstance(one, dict) else "" for one in entries]
    first = {id: number for number, id in reversed([*enumerate(ids)])}
    return [
        number
        for number, id in enumerate(ids)
        if id and first[id] < number and entries[number].get("enabled", True)
    ]


def _holds(values: Any, key: str, store: Store) -> bool:
    return has_type(values.get(key), store.inside)


def _odd_holder(values: Any, key: str, store: Store) -> bool:
    """Tell whether there is something else where the entries should be."""
    absent = values.get(key) is None and (key not in values or len(store.entries) > 1)
    return not absent and not _holds(values, key, store)


def has_type(value: object, kind: str) -> bool:
    """Tell whether a value is of the type that a description names."""
    return kind == ANY or isinstance(value, list if kind == LIST else dict)


def _name(value: object) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    return kinds.get(type(value), "a number")


def raw_entries(values: Any, store: Store) -> list[Any]:
    """Return the values of all entries of any type; notes that are objects are left out."""
    found: list[Any] = []
    for path in store.entries:
        holder = container_at(values, path)
        if isinstance(holder, dict):
            notes = {key for key, one in holder.items() if key[:1] == "_" and isinstance(one, dict)}
            found += [one for key, one in holder.items() if key not in notes]
        else:
            found += holder or ()
    return found


def container_at(values: Any, path: tuple[str, ...]) -> dict[str, Any] | list[Any] | None:
    """Return the container at a path of the document."""
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values if isinstance(values, dict | list) else None
