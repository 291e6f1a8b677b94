"""Describe keys by their name, place and state without revealing them, and find plain ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.hermes.knowledge.releases import Release
from hermes_doctor.hermes.settings.sourced_text import DEFAULT, Key, Text

if TYPE_CHECKING:
    from hermes_doctor.hermes.settings.inputs import SettingInputs
    from hermes_doctor.hermes.settings.sourced_text import Source


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
    found = {other.source: other for other in others if other and other.source != value.source}
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


_SECRET = pattern(
    r"(?i)(^|_)(api_?key|token|secret|password|passwd|private_key|auth_key|signing_key|"
    r"app_secret|client_secret|access_key)$"
)
_NOT = frozenset(("max_tokens", "key_env", "api_key_env", "token_env", "public_key"))
_DEEPEST, _MOST, _SHORTEST = 8, 2000, 8

Path = tuple[str | int, ...]


class PlainSecret(NamedTuple):
    """The place of a plain secret, without its value."""

    path: str
    source: Source


def find_plain_secrets(inputs: SettingInputs) -> Iterator[PlainSecret]:
    """Yield every value that is a usable key or token according to its name."""
    from hermes_doctor.hermes.settings.sourced_text import Text

    for path, value in suspected_secrets(inputs.raw):
        source = inputs.document.source(*path)
        if state(inputs.release, Text(value, source)) == "usable":
            yield PlainSecret(source.name, source)


def suspected_secrets(values: Mapping[Any, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the texts whose names are those of secrets, including secrets."""
    for path, value in _all_texts(values):
        name = str(path[-1])
        if len(value) >= _SHORTEST and name not in _NOT and _SECRET.search(name):
            yield path, value


def _all_texts(values: Mapping[Any, Any]) -> Iterator[tuple[Path, str]]:
    """Yield every text of a configuration with its path, within generous limits."""
    left: list[tuple[Path, Any]] = [((), values)]
    for path, value in left:  # the list grows while it is iterated
        if isinstance(value, str):
            yield path, value
        elif len(path) >= _DEEPEST or len(left) > _MOST:
            continue
        elif isinstance(value, dict):
            left += [((*path, key), one) for key, one in value.items() if isinstance(key, str)]
        elif isinstance(value, list):
            left += [((*path, number), one) for number, one in enumerate(value)]
