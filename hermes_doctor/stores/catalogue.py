"""What is known of each store: which files, their shape, and what Hermes does with a damaged one.

The shape and the consequences are written by hand; what each release makes of which flaw was
learnt from the releases.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from hermes_doctor.knowledge.data import load_knowledge
from hermes_doctor.knowledge.releases import release as numbers
from hermes_doctor.lazy import NamedTuple

WHOLE, PART, NONE, FAILS, AGAIN = "whole", "part", "none", "fails", "again"
"""What comes back of a file: all of it, some, nothing without a word, an error, or all of it,
some of it again and again."""
_SAID = (PART, NONE, FAILS, AGAIN, "stops")
OBJECT, LIST, ANY = "object", "list", "any"


class Store(NamedTuple):
    """One kind of file."""

    kind: str
    files: tuple[str, ...]
    """Where they lie in a home; `*` stands for any part of one name."""
    holds: str
    """What its entries are."""
    entries: tuple[tuple[str, ...], ...]
    """Where in the document they stand."""
    names: tuple[str, ...]
    """The fields that an entry of a list is called by."""
    top: str
    inside: str
    """What its entries stand in, where that is not the top."""
    entry: str
    needs: Mapping[str, str]
    """The fields of an entry that Hermes stumbles over when they are something else."""
    one_of: tuple[str, ...]
    """One of these keys must be there."""
    list_is: str | None
    """What a bare list at the top was meant to be the value of."""
    shown: bool
    """Whether the keys of its entries are names that may be shown as they are."""
    severity: str
    worse: Mapping[str, str]
    """How bad it is for some outcomes."""
    unless_set: str | None
    """It is needed only while this variable is not set."""
    says: Mapping[str, str]
    """By outcome: what becomes of it; `stops`: where one entry keeps those behind it from being
    read, and only those."""
    overwritten: tuple[str, ...]
    """The outcomes after which Hermes writes over the file."""
    spare: str
    """What must not be done meanwhile, lest it does."""
    mirror_since: tuple[int, ...] | None
    """The release since which state.db has the same, and counts."""
    cache: bool
    """Hermes makes it anew, and nothing is lost with it."""
    read: str
    """`always`, or at the `start` of a gateway only."""


@cache
def stores() -> tuple[Store, ...]:
    """All that are known; where two patterns fit one file, the first counts."""
    return tuple(_store(kind, facts) for kind, facts in load_knowledge("stores").items())


def store(kind: str) -> Store:
    """The one of that kind."""
    return next(one for one in stores() if one.kind == kind)


def _store(kind: str, facts: Mapping[str, Any]) -> Store:
    mirror = facts.get("mirror_since")
    return Store(
        kind=kind,
        files=tuple(facts["files"]),
        holds=facts["holds"],
        entries=tuple(map(tuple, facts["entries"])),
        names=tuple(facts.get("names", ())),
        top=facts.get("top", OBJECT),
        inside=facts.get("inside", OBJECT),
        entry=facts["entry"],
        needs=facts.get("needs", {}),
        one_of=tuple(facts.get("one_of", ())),
        list_is=facts.get("list_is"),
        shown=facts.get("shown", False),
        severity=facts["severity"],
        worse=facts.get("worse", {}),
        unless_set=facts.get("unless_set"),
        says={outcome: facts[outcome] for outcome in _SAID if outcome in facts},
        overwritten=tuple(facts.get("overwritten", ())),
        spare=facts.get("spare", ""),
        mirror_since=numbers(mirror) if mirror else None,
        cache=facts.get("cache", False),
        read=facts["read"],
    )


@cache
def harmless(kind: str, installed: tuple[int, ...] | None) -> frozenset[str]:
    """The flaws that a release reads a store of this kind in spite of."""
    flaws = load_knowledge("loaders")[kind]
    return frozenset(flaw for flaw in flaws if outcome(kind, flaw, installed) == WHOLE)


def outcome(kind: str, flaw: str, installed: tuple[int, ...] | None) -> str:
    """What a release makes of a flaw; the newest known one where there is no telling."""
    since: Mapping[str, str] = load_knowledge("loaders")[kind][flaw]
    dated = sorted((numbers(version), said) for version, said in since.items())
    fitting = [said for version, said in dated if not installed or version <= installed]
    return fitting[-1] if fitting else dated[0][1]
