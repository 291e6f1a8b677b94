"""Repair a damaged store from its own bytes."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Mapping
from typing import Any

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.hermes.stores import partial_json
from hermes_doctor.hermes.stores.catalogue import LIST, Store
from hermes_doctor.hermes.stores.damage import (
    BARE,
    BINARY,
    BOM,
    CONTROL,
    DEEP,
    ENTRY,
    FIELD,
    HOLDER,
    LEFT,
    ORIGIN,
    PADDING,
    TAIL,
    TORN,
    TWICE,
    container_at,
    duplicate_ids,
    examine_bytes,
    field_faults,
    generated_id,
    has_type,
    raw_entries,
    repair_fields,
)
from hermes_doctor.hermes.stores.entries import entries_by_name, merge_entries
from hermes_doctor.hermes.stores.partial_json import entry_name, salvage_entries

_NO_LETTER = pattern(rb"[\x80-\xbf\xd7\xf7]|[\x80-\xff]{2}")
"""What text in ASCII with single Latin-1 letters, as saved by old editors, does not contain."""


_LAST_COMMA = pattern(r'("(?:[^"\\]|\\.)*+")|,(?=\s*+[]}])')
"""A string, which is kept, or a comma directly before a closing bracket."""


class RepairedStore(NamedTuple):
    """A store that was repaired."""

    data: bytes
    description: str
    lost: tuple[str, ...] = ()
    """The names of entries that could not be kept."""
    cut_off: bool = False
    """The file was cut off, so what followed is unknown."""
    guessed: bool = False
    """The meaning of its bytes is likely, but not certain."""
    values: Any = None

    @property
    def lossless(self) -> bool:
        """Whether everything that was readable is still there, and was all there was."""
        return not (self.lost or self.cut_off or self.guessed)


def repair_bytes(data: bytes, store: Store, max_repairs: int = 3) -> RepairedStore | None:
    """Return the same entries in a file that Hermes reads; None if that is impossible.

    Behind one flaw there may be others, which are repaired in turn.
    """
    values, flaw = examine_bytes(data, store)
    bench = _Bench(data, data.removeprefix(codecs.BOM_UTF8), values, store)
    way = _WAYS.get(flaw.kind) if flaw else None
    try:
        repaired = way(bench) if way else None
    except (ValueError, RecursionError):
        return None
    if repaired is None:
        return None
    examined = examine_bytes(repaired.data, store)
    if examined.damage and flaw and examined.damage.kind != flaw.kind and max_repairs:
        then = repair_bytes(repaired.data, store, max_repairs - 1)
        return then and then._replace(
            description=f"{repaired.description}, {then.description}",
            lost=repaired.lost + then.lost,
            cut_off=repaired.cut_off or then.cut_off,
            guessed=repaired.guessed or then.guessed,
        )
    sound = examined.damage is None and entries_by_name(examined.values, store)
    return repaired._replace(values=examined.values) if sound else None


class _Bench(NamedTuple):
    """The bytes and values of a damaged store, with one method for each repair."""

    data: bytes
    without_bom: bytes
    """The data without a byte order mark."""
    values: Any
    store: Store

    def unmarked(self) -> RepairedStore:
        """Remove a byte order mark."""
        return RepairedStore(self.without_bom, "remove its byte order mark")

    def unpadded(self) -> RepairedStore:
        """Remove the NUL bytes that a crash left at the end."""
        return RepairedStore(self.without_bom.rstrip(b"\0"), "remove the NUL bytes after its end")

    def without_tail(self) -> RepairedStore:
        """Remove what follows the document's end, or merge it if it is a second document."""
        text = self.without_bom.decode("utf-8").lstrip()
        end = json.JSONDecoder(strict=False).raw_decode(text)[1]
        first = entries_by_name(self.values, self.store)
        later, whole = self._second(text[end:].lstrip().encode())
        changed = [
            n for n, value in entries_by_name(later, self.store).items() if first.get(n) != value
        ]
        if changed and whole:
            both = merge_entries(later, self.values, self.store, None)
            lost = tuple(f"{name}, the first of two versions" for name in changed if name in first)
            return RepairedStore(to_json(both), "merge its two lists", lost)
        return RepairedStore(
            f"{text[:end]}\n".encode(), "remove the text after its end", (*changed,)
        )

    def _second(self, tail: bytes) -> tuple[Any, bool]:
        """Return the document that follows the first one, and whether it is complete."""
        values, flaw = examine_bytes(tail, self.store)
        if flaw is None or flaw.kind != TORN:
            fits = has_type(values, self.store.top) and (flaw is None or flaw.kind == TAIL)
            return (values, True) if fits else (None, False)
        repaired_store = _Bench(tail, tail, None, self.store).closed()
        return (
            examine_bytes(repaired_store.data, self.store).values if repaired_store else None
        ), False

    def escaped(self) -> RepairedStore:
        """Escape control characters as JSON requires."""
        how = "escape its control characters"
        return RepairedStore(to_json(self.values), how)

    def wrapped(self) -> RepairedStore | None:
        """Turn a bare list into the value that it was meant to be."""
        if not self.store.list_is or not isinstance(self.values, list):
            return None
        how = f"put its list below {self.store.list_is}"
        return RepairedStore(to_json({self.store.list_is: self.values}), how)

    def in_utf8(self) -> RepairedStore | None:
        """Convert UTF-16, as saved on Windows, or Latin-1 to UTF-8; else extract the entries."""
        if self.data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return RepairedStore(self.data.decode("utf-16").encode("utf-8"), "rewrite it as UTF-8")
        if not _NO_LETTER.search(self.data):
            data = self.data.decode("latin-1").encode("utf-8")
            if examine_bytes(data, self.store).damage is None:
                how = "rewrite it from Latin-1 to UTF-8"
                return RepairedStore(data, how, guessed=True)
        return self.salvaged()

    def salvaged(self) -> RepairedStore | None:
        """Keep the entries that can be read on their own."""
        left = salvage_entries(self.without_bom.decode("utf-8", "replace"), self.store)
        if not entries_by_name(left.values, self.store):
            return None
        how = "keep the entries that can be read"
        return RepairedStore(to_json(left.values), how, left.lost, cut_off=True)

    def reheld(self) -> RepairedStore | None:
        """Turn entries in a mapping into a list; remove containers without entries."""
        odd = [path[0] for path in self.store.entries if path and self._no_holder(path[0])]
        held = self.values[odd[0]]
        if self.store.inside == LIST and isinstance(held, dict):
            how = f"turn {odd[0]} into a list"
            return RepairedStore(to_json({**self.values, odd[0]: [*held.values()]}), how)
        kept = {key: value for key, value in self.values.items() if key not in odd}
        return RepairedStore(to_json(kept), f"remove the invalid {odd[0]}", (*odd,), cut_off=True)

    def _no_holder(self, key: str) -> bool:
        return key in self.values and not has_type(self.values[key], self.store.inside)

    def put_right(self) -> RepairedStore:
        """Reset invalid fields to the value that Hermes would use without them."""
        kept = json.loads(json.dumps(self.values))
        how = "remove invalid fields, which Hermes fills in"
        if any(
            "schedule" in field_faults(entry, self.store) for entry in raw_entries(kept, self.store)
        ):
            how += " (jobs without a valid schedule run when they get one)"
        lost = self._keep_only(
            kept, lambda key, entry: key[:1] == "_" or repair_fields(entry, key, self.store)
        )
        return RepairedStore(to_json(kept), how, lost)

    def _keep_only(self, values: Any, keeps: Callable[[str, Any], bool]) -> tuple[str, ...]:
        """Remove the other entries; return their names, without those of Hermes' own notes."""
        lost: list[str] = []
        for path in self.store.entries:
            holder = container_at(values, path)
            if isinstance(holder, list):
                kept = [keeps("", entry) for entry in holder]
                lost += [f"number {number}" for number, keep in enumerate(kept, 1) if not keep]
                holder[:] = [entry for entry, keep in zip(holder, kept, strict=True) if keep]
            elif holder is not None:
                bad = [key for key, entry in holder.items() if not keeps(key, entry)]
                lost += [key for key in bad if not key.startswith("_")]
                for key in bad:
                    del holder[key]
        return tuple(lost)

    def renamed(self) -> RepairedStore:
        """Give an entry with the id of another a new id."""
        kept = json.loads(json.dumps(self.values))
        entries = raw_entries(kept, self.store)
        for number in duplicate_ids(entries, self.store):
            entries[number]["id"] = generated_id(entries[number], number)
        return RepairedStore(to_json(kept), "give each entry its own id")

    def without_odd(self) -> RepairedStore:
        """Remove what is not an entry; Hermes' own notes are not counted as lost."""
        kept = json.loads(json.dumps(self.values))
        lost = self._keep_only(kept, lambda _, entry: has_type(entry, self.store.entry))
        return RepairedStore(to_json(kept), "remove invalid entries", lost)

    def without_commas(self) -> RepairedStore | None:
        """Remove commas before closing brackets, which people leave; None if that is not all."""
        text = self.without_bom.decode("utf-8")
        made = _LAST_COMMA.sub(lambda found: found[1] or "", text).encode()
        if made == self.without_bom or examine_bytes(made, self.store).damage is not None:
            return None
        return RepairedStore(made, "remove commas before closing brackets")

    def closed(self) -> RepairedStore | None:
        """Keep the complete part of a file that is cut off."""
        if by_hand := self.without_commas():
            return by_hand
        text = self.without_bom.decode("utf-8").rstrip("\0")
        truncated_text = partial_json.close_truncated(text, self.store.entries)
        if truncated_text is None:
            return self.salvaged()
        lost = truncated_text.lost
        paths = self.store.entries
        deep = any(lost[: len(path)] == path and len(lost) > len(path) for path in paths)
        names = (_torn_name(truncated_text, self.store),) if deep else ()
        return RepairedStore(
            truncated_text.text.encode(), "close it where it is cut off", names, cut_off=True
        )


def to_json(values: Any) -> bytes:
    """Write values as Hermes does."""
    text = json.dumps(values, indent=2, ensure_ascii=False)
    try:
        return f"{text}\n".encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can only write as an escape
        return f"{json.dumps(values, indent=2)}\n".encode()


def _torn_name(truncated_text: partial_json.TruncatedText, store: Store) -> str:
    """Return the name of the entry that is cut off, if that much of it is left."""
    last = truncated_text.lost[-1]
    if isinstance(last, str):
        return last if len(store.entries) == 1 else ".".join(map(str, truncated_text.lost))
    return entry_name(truncated_text.rest, store) or f"number {last + 1}"


_WAYS: Mapping[str, Callable[[_Bench], RepairedStore | None]] = {
    BOM: _Bench.unmarked,
    PADDING: _Bench.unpadded,
    TAIL: _Bench.without_tail,
    CONTROL: _Bench.escaped,
    BARE: _Bench.wrapped,
    ENTRY: _Bench.without_odd,
    BINARY: _Bench.in_utf8,
    TORN: _Bench.closed,
    HOLDER: _Bench.reheld,
    DEEP: _Bench.salvaged,
    FIELD: _Bench.put_right,
    ORIGIN: _Bench.put_right,
    LEFT: _Bench.put_right,
    TWICE: _Bench.renamed,
}
