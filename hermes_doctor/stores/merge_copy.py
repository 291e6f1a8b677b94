"""Merge what is left of a store with what only a copy of it has."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from hermes_doctor.stores.catalogue import Store
from hermes_doctor.stores.damage import container_at


def merge(own: Any, theirs: Any, store: Store, missed: Collection[str] | None) -> Any:
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
                if missed is None or _name(path, key, store) in missed:
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


def _name(path: tuple[str, ...], key: str, store: Store) -> str:
    return ".".join((*path, key)) if len(store.entries) > 1 else key


def identity(entry: Any, store: Store) -> str | None:
    """Return the id of a list entry."""
    value = entry.get(store.names[-1]) if isinstance(entry, dict) and store.names else None
    return str(value) if value else None
