"""Describe a key by its name, place and state, without revealing its value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hermes_doctor.lazy import pattern
from hermes_doctor.settings.release import Release
from hermes_doctor.settings.sourced_text import DEFAULT, Key, Text

_UNRESOLVED = pattern(r"\$\{[^}]*\}|^\$[A-Za-z_]")
_MASKED = pattern(r"\*{3}|•{3}|…|\.\.\.|‹|\[redacted|\(\d+-character \w+\)", re.IGNORECASE)
_EXAMPLE = pattern(
    r"your[-_ ].*|<.*>|\[.*\]|(?:sk|pk|gsk|xai)[-_]your\b.*|.*[-_ ]your[-_ ].*key|paste[-_ ].*|"
    r"x{3,}|.*[-_]x{4,}|todo|fixme|replace.*|change[-_ ]?me|insert.*|.*[-_ ]here|"
    r"sk-(?:or-)?(?:v1-)?(?:x+|\.+)|abc123|test|secret|api[-_]?key|token",
    re.IGNORECASE,
)
_BEGINS = ("your", "<", "[", "x", "replace", "insert", "change", "paste", "sk-your", "sk_your")
_ENDS = ("x", "_here", ".", "-here", " here", "key")

_VENDORS = {
    "sk-or-": "openrouter.ai",
    "sk-proj-": "openai.com",
    "sk-svcacct-": "openai.com",
    "sk-ant-": "anthropic.com",
    "gsk_": "groq.com",
    "xai-": "x.ai",
}
_COMMENT = pattern(r"(?<=\S)\s+#.*$")
_BEARER = pattern(r"bearer\s+", re.IGNORECASE)
_LINE = pattern(r"(?:export\s+)?[A-Z][A-Z0-9_]+_(?:KEY|TOKEN)\s*=\s*")
_QUOTES = "\"'`“”‘’«»"
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"))


def key_of(release: Release | None, value: Text, overridden: Iterable[Text] = ()) -> Key:
    """Describe a key, with the keys that it overrides."""
    source = value.source
    return Key(
        name=(source.via or source).name,
        source=source,
        state=state(release, value),
        fingerprint=fingerprint(value),
        shadows=tuple(key_of(release, one) for one in _different(value, overridden)),
        faults=tuple(faults(value)) if value.source.kind != DEFAULT else (),
        vendor=next((_VENDORS[begin] for begin in _VENDORS if value.startswith(begin)), None),
        length=len(value.strip()),
    )


def _different(value: Text, others: Iterable[Text]) -> list[Text]:
    found = {one.source: one for one in others if one and one.source != value.source}
    return list(found.values())


def state(release: Release | None, value: Text) -> str:
    """Return the state of a key, such as `usable` or `placeholder`."""
    bare = value.strip()
    if value.source.kind == DEFAULT and bare:
        return "missing" if value.source.via else "not needed"
    if not bare:
        return "missing"
    if "$" in bare and _UNRESOLVED.search(bare):
        return "unresolved"
    if _MASKED.search(bare):
        return "masked"
    listed = release is not None and len(bare) >= 4 and not release.is_usable(bare)
    return "placeholder" if listed or _is_example(bare) else "usable"


def _is_example(bare: str) -> bool:
    """Tell whether it is an example key; unlikely ones skip the slow pattern."""
    word = bare.lower()
    likely = len(word) <= 12 or word.startswith(_BEGINS) or word.endswith(_ENDS)
    return likely and _EXAMPLE.fullmatch(bare) is not None


def faults(value: str) -> Iterator[str]:
    """Yield what a key contains that is not part of it."""
    bare = value.strip()
    if not bare:
        return
    if not bare.isascii():
        yield "letters"
    if "#" in bare and _COMMENT.search(bare):
        yield "comment"
    if bare[0] in _QUOTES or bare[-1] in _QUOTES:
        yield "quotes"
    if " " in bare and _BEARER.match(bare.strip(_QUOTES)):
        yield "bearer"
    if "=" in bare and _LINE.match(bare):
        yield "name"


def strip_faults(value: str) -> str | None:
    """Return the key without these parts; None if that is not certain."""
    bare = "".join(char for char in value.strip() if char.isprintable() or char == "\t")
    bare = _COMMENT.sub("", _LINE.sub("", bare.translate(_INVISIBLE).strip()))
    bare = _BEARER.sub("", bare.strip().strip(_QUOTES).strip()).strip()
    plain = len(bare) >= 8 and bare.isascii() and not any(char.isspace() for char in bare)
    return bare if plain and not any(faults(bare)) else None


def fingerprint(value: str) -> str | None:
    """Return a value that is equal for equal keys in one run, and useless outside of it."""
    return f"{hash(str(value)) & (2**64 - 1):016x}" if value.strip() else None
