"""Describe each kind of store: its files, its structure, and what Hermes does with a damaged one.

Structure and consequences are written by hand; how each release handles which flaw was determined
by running the releases.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from hermes_doctor.core.lazy import EMPTY, NamedTuple
from hermes_doctor.hermes.knowledge import parse_release
from hermes_doctor.hermes.knowledge.releases import caches, load_knowledge

WHOLE, PART, NONE, FAILS, AGAIN = "whole", "part", "none", "fails", "again"
"""What Hermes reads of a damaged file.

All of it, some, nothing without an error, an error, or all of it but some of it repeatedly.
"""
_SAID = (PART, NONE, FAILS, AGAIN, "stops")
OBJECT, LIST, ANY = "object", "list", "any"


class Store(NamedTuple):
    """A kind of store."""

    kind: str
    files: tuple[str, ...]
    """Their paths in a home; `*` stands for any part of one name."""
    holds: str
    """What its entries are, in words."""
    entries: tuple[tuple[str, ...], ...]
    """The paths of the entries in the document."""
    entry: str
    severity: str
    read: str
    """`always`, or only at the `start` of a gateway."""
    names: tuple[str, ...] = ()
    """The fields that name an entry of a list."""
    top: str = OBJECT
    inside: str = OBJECT
    """The type of the container of the entries, if that is not the top level."""
    needs: Mapping[str, str] = EMPTY
    """The fields of an entry that Hermes fails on if they have another type."""
    one_of: tuple[str, ...] = ()
    """At least one of these keys must exist."""
    list_is: str | None = None
    """The key whose value a bare list at the top level was meant to be."""
    shown: bool = False
    """Whether the keys of its entries may be shown without redaction."""
    worse: Mapping[str, str] = EMPTY
    """The severity for particular outcomes."""
    unless_set: str | None = None
    """The store is needed only while this variable is not set."""
    says: Mapping[str, str] = EMPTY
    """What follows, by outcome; `stops`: an entry keeps only those after it from being read."""
    overwritten: tuple[str, ...] = ()
    """The outcomes after which Hermes overwrites the file."""
    spare: str = ""
    """What must not be done in the meantime, because Hermes would then overwrite it."""
    mirror_since: tuple[int, ...] | None = None
    """The release since which state.db has the same data and is used instead."""
    cache: bool = False
    """Hermes creates it again, and nothing is lost."""


@cache
def stores() -> tuple[Store, ...]:
    """Return all kinds of stores; if two patterns match a file, the first one applies."""
    return tuple(_store(kind, facts) for kind, facts in load_knowledge("stores").items())


def _store(kind: str, facts: Mapping[str, Any]) -> Store:
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in facts.items()
        if name not in _SAID
    }
    fields["entries"] = tuple(map(tuple, facts["entries"]))
    if "mirror_since" in facts:
        fields["mirror_since"] = parse_release(facts["mirror_since"])
    says = {outcome: facts[outcome] for outcome in _SAID if outcome in facts}
    return Store(kind=kind, says=says, **fields)


@cache
def harmless_flaws(kind: str, installed: tuple[int, ...] | None) -> frozenset[str]:
    """Return the flaws that do not keep a release from reading a store of this kind."""
    flaws = load_knowledge("loaders")[kind]
    return frozenset(flaw for flaw in flaws if outcome(kind, flaw, installed) == WHOLE)


caches.append(harmless_flaws.cache_clear)


def outcome(kind: str, flaw: str, installed: tuple[int, ...] | None) -> str:
    """Return what a release makes of a flaw; the newest known release if it is unknown."""
    since: Mapping[str, str] = load_knowledge("loaders")[kind][flaw]
    dated = sorted((parse_release(version), said) for version, said in since.items())
    fitting = [said for version, said in dated if not installed or version <= installed]
    return fitting[-1] if fitting else dated[0][1]
