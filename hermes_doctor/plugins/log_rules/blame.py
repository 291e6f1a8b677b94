"""Decide whom an entry blames: the cause that it names, even if the words around say otherwise.

A log rule refines the words. If it blames something else than the innermost cause that the entry
names, the finding gets code, title and advice of the cause; what the rule says about severity, time
and end stays. If the rule only says what fails, such as a job, the cause gets a finding beside it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.logs.entry import LogEntry
from hermes_doctor.plugins.log_causes.cause import Cause
from hermes_doctor.plugins.log_causes.reading import Place, Reading
from hermes_doctor.plugins.log_causes.success_reader import Success
from hermes_doctor.plugins.log_rules.rule import Rule

MACHINE = "machine"
"""The family that outweighs even a rule about the fault of certain releases."""
BASIC = (MACHINE, "network", "data", "code")
"""Families of causes that outweigh a rule. What another side answers, a rule may know better."""
SAYS_LITTLE = 80
"""Causes from this rank on say hardly more than that something failed."""
BASIC_RANK = 50
"""Causes from this rank on say less than a rule."""
CONNECTION = ("connect", "log in", "receive", "start")
"""Operations of a platform that fail together: the most basic of their causes is to blame."""
Key = tuple[Place, str, str]
"""Place, operation and name of the cause; a connection has one key for all its causes."""
_FIELD = pattern(r"\{(\w+)\}")
_FIRST_SENTENCE = re.compile(r".*?[.!?](?= |$)")


class EntryReader(Protocol):
    """Reads what entries say."""

    @property
    def causes(self) -> Sequence[Cause]:
        """The known causes."""

    def cause_of(
        self, text: str, more: Sequence[str] = ()
    ) -> tuple[Cause | None, Mapping[str, str]]:
        """Return the cause that a text names, with its fields."""

    def read(self, entry: LogEntry) -> Reading:
        """Return place, operation, cause and outcome of an entry."""

    def successes(self, entry: LogEntry) -> Collection[Success]:
        """Return what works again, as an entry shows."""

    def may_succeed(self, level: str, logger: str) -> bool:
        """Tell whether entries of this level and logger could show that something works."""


class Blame(NamedTuple):
    """A cause, and where an entry names it."""

    cause: Cause
    place: Place | None
    fields: Mapping[str, str]
    beside: bool = False
    """The rule is right about what fails, and this is why."""
    key: Key | None = None
    """The failure that the entry belongs to."""

    @property
    def code(self) -> str:
        """The code of findings about this cause at this place."""
        return self.cause.code_in(self.place.part if self.place else "")

    @property
    def title(self) -> str:
        """The title of findings: the place and the cause, with {fields} whose values are known."""
        words = cause_words(self.cause, self.fields)
        return f"{self.place.label}: {words}" if self.place else words


class Blamer:
    """Compares the causes of entries with the codes of rules."""

    def __init__(self, causes: Sequence[Cause], symptoms: Collection[str] = ()) -> None:
        """`symptoms`: codes that say what fails and blame nothing."""
        codes = {code for one in causes for code in (one.code, *one.codes)}
        self._symptoms = frozenset(symptoms)
        self._blaming = codes - self._symptoms

    def judge(self, reading: Reading, rule: Rule) -> Blame | None:
        """Return the cause that an entry names, if the rule does not say it."""
        cause = reading.cause
        if cause is None or cause.rank >= SAYS_LITTLE or cause.means(rule.code):
            return None
        beside = rule.code not in self._blaming
        if "<" in rule.versions and cause.family != MACHINE:
            return None
        basic = cause.family in BASIC and cause.rank < BASIC_RANK
        if not basic and rule.code not in self._symptoms:
            return None
        blame = Blame(cause, reading.place, reading.fields, beside, key_of(reading))
        return None if blame.code in self._symptoms else blame


def key_of(reading: Reading) -> Key | None:
    """Return what distinguishes a failure; None if it is not known who failed, or why."""
    place, cause = reading.place, reading.cause
    if place is None:
        return None
    if place.part == "platform" and reading.operation in CONNECTION:
        return place, CONNECTION[0], ""
    return (place, reading.operation, cause.name) if cause else None


def cause_words(cause: Cause, fields: Mapping[str, str]) -> str:
    """Return the words for a cause, with {fields} only if their values are known."""
    full, _, plain = cause.title.partition(" | ")
    known = all(fields.get(name) for name in _FIELD.findall(full))
    return full if known or not plain else plain


def blamed(rule: Rule, blame: Blame) -> Rule:
    """Return the rule with code, words and advice of a cause that it does not say.

    A rule that is wrong about the cause keeps its effect: the first sentence of its detail, and
    what its code breaks. The checks that outweigh its lines examine something else.
    """
    effect = None if blame.beside else _FIRST_SENTENCE.match(rule.detail)
    detail = " ".join(filter(None, (effect[0] if effect else "", blame.cause.detail)))
    return rule._replace(
        id=f"{rule.id}/{blame.cause.name}",
        code=blame.code,
        title=blame.title,
        detail=detail,
        next=blame.cause.advice,
        unless_ok=(),
        database="",
        fix=None,
        effect_of="" if blame.beside else rule.code,
    )
