"""What may be said of a key: its name, its place and its state, never what it is."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hermes_doctor.patterns import pattern
from hermes_doctor.settings.release import Release
from hermes_doctor.settings.text import DEFAULT, Key, Text

_UNRESOLVED = pattern(r"\$\{[^}]*\}|^\$[A-Za-z_]")
_MASKED = pattern(r"\*{3}|•{3}|…|\.\.\.|‹|\[redacted", re.IGNORECASE)
_EXAMPLE = pattern(
    r"your[-_ ].*|<.*>|x{3,}|.*[-_]x{4,}|todo|fixme|replace.*|change[-_ ]?me|insert.*|.*_here|"
    r"sk-(?:or-)?(?:v1-)?(?:x+|\.+)|abc123|test|secret|api[-_]?key|token",
    re.IGNORECASE,
)
_BEGINS = ("your", "<", "x", "replace", "insert", "change")
_ENDS = ("x", "_here", ".")


def key_of(release: Release | None, value: Text, others: Iterable[Text] = ()) -> Key:
    """A key as an answer, with those that it shadows."""
    source = value.source
    return Key(
        name=(source.via or source).name,
        source=source,
        state=state(release, value),
        fingerprint=fingerprint(value),
        shadows=tuple(key_of(release, one) for one in _different(value, others)),
    )


def _different(value: Text, others: Iterable[Text]) -> list[Text]:
    found = {one.source: one for one in others if one and one.source != value.source}
    return list(found.values())


def state(release: Release | None, value: Text) -> str:
    """What kind of a key this is."""
    bare = value.strip()
    if value.source.kind == DEFAULT and bare:
        return "not needed"
    if not bare:
        return "missing"
    if "$" in bare and _UNRESOLVED.search(bare):
        return "unresolved"
    if _MASKED.search(bare):
        return "masked"
    listed = release is not None and len(bare) >= 4 and not release.is_usable(bare)
    return "placeholder" if listed or _is_example(bare) else "usable"


def _is_example(bare: str) -> bool:
    """Whether it stands for a key in an example; what is plainly none costs no look at the rest."""
    word = bare.lower()
    likely = len(word) <= 12 or word.startswith(_BEGINS) or word.endswith(_ENDS)
    return likely and _EXAMPLE.fullmatch(bare) is not None


def fingerprint(value: str) -> str | None:
    """Equal for equal keys in one run of this program, and worthless outside of it."""
    return f"{hash(str(value)) & (2**64 - 1):016x}" if value.strip() else None
