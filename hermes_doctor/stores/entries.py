"""The entries of a store by the names that a plan may show: ids and names, never what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermes_doctor import masking
from hermes_doctor.stores.described import Store
from hermes_doctor.stores.judging import inside

LONGEST = 60
MOST, FEW = 40, 5


def named(values: Any, store: Store) -> dict[str, Any]:
    """What each entry is called, with what it holds; notes of Hermes' own (`_…`) are none."""
    found: dict[str, Any] = {}
    for path in store.entries:
        holder = inside(values, path)
        pairs = holder.items() if isinstance(holder, dict) else enumerate(holder or ())
        for key, value in pairs:
            if isinstance(key, str) and key.startswith("_"):
                continue
            words = (*path, key) if isinstance(key, str) and len(store.entries) > 1 else (key,)
            name = ".".join(map(str, words)) if isinstance(key, str) else _called(value, key, store)
            found[_unused(name, found)] = value
    return found


def _called(value: Any, number: int, store: Store) -> str:
    said = [str(value[key]) for key in store.names if isinstance(value, dict) and value.get(key)]
    return (
        f"{said[0]} ({said[1]})" if len(said) > 1 else said[0] if said else f"number {number + 1}"
    )


def _unused(name: str, found: Mapping[str, Any]) -> str:
    number = 2
    while (numbered := name if number == 2 else f"{name} #{number - 1}") in found:
        number += 1
    return numbered


def shown(name: str, store: Store) -> str:
    """A name as it may be shown: in one line, not too long, and nothing that looks like a key."""
    text = masking.clean(name) if store.shown else masking.words(name)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def difference(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    lost: tuple[str, ...],
    store: Store,
    changed: str = "as it was in the copy",
) -> Iterator[str]:
    """Entry by entry: which stay, which come back, which change, which are lost.

    Where there are many, those that stay are counted: what is lost is to be seen.
    """
    stay = [f"  {shown(name, store)}" for name in after if _same(name, before, after)]
    lines = [
        f"~ {shown(name, store)}  {changed}"
        for name in after
        if name in before and not _same(name, before, after)
    ]
    lines += [f"+ {shown(name, store)}" for name in after if name not in before]
    gone = [name for name in before if name not in after]
    lines += [f"- {shown(name, store)}" for name in gone]
    cut = [name for name in lost if name not in gone and not _is_in(name, after)]
    lines += [f"- {shown(name, store)}  cannot be kept" for name in cut]
    room = max(FEW, MOST - len(lines))
    yield from stay[:room]
    if len(stay) > room:
        yield f"  … {len(stay) - room} more stay as they are"
    yield from lines


def _same(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    return name in before and before[name] == after[name]


def _is_in(name: str, after: Mapping[str, Any]) -> bool:
    """Whether an entry is there of which only one of its two names is known."""
    ways = (f"{name} (", f" ({name})")
    return name in after or any(o.startswith(ways[0]) or o.endswith(ways[1]) for o in after)
