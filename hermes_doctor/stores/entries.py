"""Name the entries of a store for display: ids and names, never their contents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermes_doctor import redaction
from hermes_doctor.stores.catalogue import Store
from hermes_doctor.stores.damage import container_at

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
            found[_unused(name, found, often)] = value
    return found


def _called(value: Any, number: int, store: Store) -> str:
    said = [str(value[key]) for key in store.names if isinstance(value, dict) and value.get(key)]
    return (
        f"{said[0]} ({said[1]})" if len(said) > 1 else said[0] if said else f"number {number + 1}"
    )


def _unused(name: str, found: Mapping[str, Any], often: dict[str, int]) -> str:
    numbered = name
    while numbered in found:
        often[name] = often.get(name, 1) + 1
        numbered = f"{name} #{often[name]}"
    return numbered


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
