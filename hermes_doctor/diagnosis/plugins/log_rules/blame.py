"""Decide whom an entry blames: the cause that it names, even if the words around say otherwise.

A log rule refines the words. If it blames something else than the innermost cause that the entry
names, the finding gets code, title and advice of the cause; what the rule says about severity, time
and end stays. If the rule only says what fails, such as a job, the cause gets a finding beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.diagnosis.plugins.log_causes.cause_index import Cause
from hermes_doctor.diagnosis.plugins.log_causes.reading import SAID, Place, Reading
from hermes_doctor.diagnosis.plugins.log_rules.rule import Rule

MACHINE = "machine"
"""The family that outweighs even a rule about the fault of certain releases."""
BASIC = (MACHINE, "network", "data", "code")
"""Families of causes that outweigh a rule. What another side answers, a rule may know better."""
DATA, LOCAL = "data", ("save", "read")
"""The part and the family of stored data, and the operations on it."""
SAYS_LITTLE = 80
"""Causes from this rank on say hardly more than that something failed."""
NOTHING_SAID = 95
"""Causes from this rank on name no reason."""
INFO, WARNING = "info", "warning"
REMOTE = "remote"
"""What the other side answers; a rule knows better whether that matters."""
BASIC_RANK = 50
"""Causes from this rank on say less than a rule."""
CONNECTION = ("connect", "log in", "receive", "start")
"""Operations of a platform that fail together: the most basic of their causes is to blame."""
Key = tuple[Place, str, str]
"""Place, operation and name of the cause; a connection has one key for all its causes."""
_FIELD = pattern(r"\{(\w+)\}")
_FIRST_SENTENCE = pattern(r".*?[.!?](?= |$)")


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
        """The code of findings about this cause at this place.

        What a platform saves and reads is data of this machine, not what the platform sends.
        """
        if self.place is None:
            return self.cause.code
        if self.key and self.key[1] in LOCAL and self.cause.family == DATA:
            return self.cause.code_in(DATA)
        return self.cause.code_in(*self.place[:2])

    @property
    def title(self) -> str:
        """The title of findings: the place and the cause, with {fields} whose values are known."""
        words = cause_words(self.cause, self.fields)
        return f"{self.place.label}: {words}" if self.place else words

    @property
    def detail(self) -> str:
        """The detail of findings, with the reason that the other side gave."""
        return joined(self.cause.detail, self.answer)

    @property
    def answer(self) -> str:
        """A sentence with the reason that the other side gave; empty if it gave none."""
        return 'The answer was: "{said}".' if self.fields.get(SAID) else ""


class Blamer:
    """Compares the causes of entries with the codes of rules."""

    def __init__(self, causes: Sequence[Cause], symptoms: Collection[str] = ()) -> None:
        """`symptoms`: codes that say what fails and blame nothing."""
        self._causes = causes
        self._symptoms = frozenset(symptoms)

    @cached_property
    def _blaming(self) -> frozenset[str]:
        """The codes that name a cause."""
        codes = frozenset(code for cause in self._causes for code in (cause.code, *cause.codes))
        return codes - self._symptoms

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
        code = cause.code_in(reading.place.part if reading.place else "")
        return None if code in self._symptoms else blame

    def reason(self, reading: Reading, rule: Rule) -> Blame | None:
        """Return the cause that an entry names, if a rule is right but does not say why.

        A rule for a symptom gets the words and the advice of the cause, any other rule the answer
        of the other side, unless its own words have it.
        """
        cause = reading.cause
        if cause is None or cause.rank >= NOTHING_SAID or not cause.means(rule.code):
            return None
        if rule.code not in self._symptoms and not reading.fields.get(SAID):
            return None
        return Blame(cause, reading.place, reading.fields, key=key_of(reading))

    def with_reason(self, rule: Rule, blame: Blame, shown: str) -> Rule:
        """Return the rule with the reason that its lines name; `shown` is what it already says."""
        severity = rule.severity
        lasts = not blame.cause.transient and blame.cause.rank < SAYS_LITTLE
        if severity == INFO and lasts and blame.cause.family != REMOTE:
            severity = WARNING
        failure = blame.fields.get(SAID, "")
        answer = blame.answer if failure not in shown else ""
        if rule.code not in self._symptoms:
            return rule._replace(detail=joined(rule.detail, answer), severity=severity)
        words = f"The log names the cause: {cause_words(blame.cause, blame.fields)}."
        return rule._replace(
            detail=joined(rule.detail, words, answer), next=blame.cause.advice, severity=severity
        )


def key_of(reading: Reading) -> Key | None:
    """Return what distinguishes a failure; None if it is not known who failed, or why."""
    place, cause = reading.place, reading.cause
    if place is None:
        return None
    if place.part == "platform" and reading.operation in CONNECTION:
        return place, CONNECTION[0], ""
    return (place, reading.operation, cause.name) if cause else None


def joined(*sentences: str) -> str:
    """Return the sentences that are not empty as one text."""
    return " ".join(filter(None, sentences))


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
    detail = joined(effect[0] if effect else "", blame.detail)
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
