"""Name the entries of a store for display, compare them, and merge those of two copies.

Ids and names are shown, never the contents of an entry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from hermes_doctor.core import redaction
from hermes_doctor.hermes.stores.catalogue import Store
from hermes_doctor.hermes.stores.damage import container_at

LONGEST = 60
MOST, FEW = 40, 5


def entries_by_name(values: Any, store: Store) -> dict[str, Any]:
    """Map the name of each entry to its value; Hermes' own notes (`_…`) are left out."""
    found: dict[str, Any] = {}
    often: dict[str, int] = {}
    for path in store.entries:
        holder = container_at(values, path)
        pairs = holder.items() if isinstance(holder, dict) else enumerate(holder or ())
        for key, value in pairs:
            if isinstance(key, str) and key.startswith("_"):
                continue
            words = (*path, key) if isinstance(key, str) and len(store.entries) > 1 else (key,)
            name = ".".join(map(str, words)) if isinstance(key, str) else _called(value, key, store)
            numbered = name
            while numbered in found:
                often[name] = often.get(name, 1) + 1
                numbered = f"{name} #{often[name]}"
            found[numbered] = value
    return found


def _called(value: Any, number: int, store: Store) -> str:
    said = [str(value[key]) for key in store.names if isinstance(value, dict) and value.get(key)]
    return (
        f"{said[0]} ({said[1]})" if len(said) > 1 else said[0] if said else f"number {number + 1}"
    )


def shown(name: str, store: Store) -> str:
    """Shorten and redact a name for display, on one line."""
    text = redaction.clean(name) if store.shown else redaction.redact_words(name)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def difference(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    lost: tuple[str, ...],
    store: Store,
    changed: str = "as in the copy",
) -> Iterator[str]:
    """Yield, entry by entry, which ones stay, come back, change or are lost.

    If there are many, those that stay are only counted, so that the losses are visible.
    """
    there = {part for name in after for part in (name, *_parts(name))}
    gone = [name for name in before if name not in after]
    cut = [name for name in lost if name not in before and name not in there]
    stay = [name for name in after if _same(name, before, after)]
    moved = [name for name in after if name in before and not _same(name, before, after)]
    groups = [
        ("~", moved, f"  {changed}"),
        ("+", [name for name in after if name not in before], ""),
        ("-", gone, ""),
        ("-", cut, "  cannot be kept"),
    ]
    room = max(FEW, MOST - sum(len(names) for _, names, _ in groups))
    yield from (f"  {shown(name, store)}" for name in stay[:room])
    if len(stay) > room:
        yield f"  … {len(stay) - room} more are kept"
    for sign, names, word in groups:
        yield from (f"{sign} {shown(name, store)}{word}" for name in names[:MOST])
        if len(names) > MOST:
            yield f"{sign} … {len(names) - MOST} more"


def _same(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    return name in before and before[name] == after[name]


def _parts(name: str) -> tuple[str, ...]:
    """Return both names of an entry with two; of a damaged one only one may be known."""
    first, found, second = name.rpartition(" (")
    return (first, second[:-1]) if found and second.endswith(")") else ()


def merge_entries(own: Any, theirs: Any, store: Store, missed: Collection[str] | None) -> Any:
    """Return `own` with what only `theirs` has; if `missed` is given, only those entries.

    What the store itself still has is newer than any copy, so it stays unchanged.
    """
    import copy

    made, other = copy.deepcopy(own), copy.deepcopy(theirs)
    if not isinstance(made, type(other)):
        return made
    for path in store.entries:
        holder, source = container_at(made, path), container_at(other, path)
        if holder is None and path and source:
            holder = made.setdefault(path[0], type(source)())
        if isinstance(holder, dict) and isinstance(source, dict):
            for key, value in source.items():
                if missed is None or _dotted_name(path, key, store) in missed:
                    holder.setdefault(key, value)
        elif isinstance(holder, list) and isinstance(source, list):
            known = {identity(entry, store) for entry in holder}
            for entry in source:
                called = identity(entry, store)
                if called not in known and (missed is None or called in missed):
                    holder.append(entry)
    if isinstance(made, dict) and () not in store.entries:
        for key, value in other.items():
            made.setdefault(key, value)
    return made


def _dotted_name(path: tuple[str, ...], key: str, store: Store) -> str:
    return ".".join((*path, key)) if len(store.entries) > 1 else key


def identity(entry: Any, store: Store) -> str | None:
    """Return the id of a list entry."""
    value = entry.get(store.names[-1]) if isinstance(entry, dict) and store.names else None
    return str(value) if value else None
