"""Write a secret in every form in which a program may print it, and find these forms in a text.

The values of a home are often printed by others: a library quotes a password in an error, a log has
a header in base64. So a value is not searched as it is stored only, but escaped, encoded, cut off
and wrapped over two lines as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hermes_doctor.core.lazy import NamedTuple, pattern

SHORTEST = 6
"""Characters; a shorter value is too likely to be part of something else."""
LONGEST = 4096
MOST = 300
"""Secrets of one process; more are not searched, so that a huge file takes no time."""
_WHOLE_WORD = 12
"""A shorter value is only found as a word of its own."""
_LONG_NUMBER = 8
_PART = 8
"""Characters of a value that was cut off; fewer are not worth hiding."""
_KINDS = ("value", "password", "secret", "token", "key", "line", "name", "comment", "login")
_STANDS_FOR_ONE = ("***", "•••", "…", "...", "${", "[redacted")
"""In a value: it refers to a secret, or is in the place of one."""
_NEVER_ESCAPED = dict.fromkeys(map(ord, "-._~"))
_BREAK = pattern(r"[ \t]*(?:[\r\n\ufffd]|\\[rn])+[ \t]*")
_CUT = pattern(r"…|\.\.\.|\0|\Z")
"""Where a text was cut off; a NUL separates texts that are searched together."""
_BASE64 = frozenset("abcdefghijklmnopqrstuvwxyz0123456789+/=_-")


class Secret(NamedTuple):
    """A value that must not be shown, with the name of its setting."""

    value: str
    name: str = ""


class Span(NamedTuple):
    """A part of a text that shows a secret."""

    start: int
    end: int
    secret: Secret


class _Form(NamedTuple):
    text: str
    """In small letters."""
    secret: Secret
    encoded: bool
    """In base64: the characters around it belong to it."""
    word: bool
    """It must be a word of its own."""
    least: int
    """How many characters of it tell the secret."""


def describe_hidden(value: str, name: str = "", kind: str = "value") -> str:
    """Describe a hidden value by its length and kind: `(44-character key)`.

    The kind is a word from the name of its setting, such as `token`, if the name has one.
    """
    words = ("password", "secret", "token", "key")
    kind = next((word for word in words if word in name.lower()), kind)
    return f"({len(value)}-character {kind})"


def is_distinct(value: str) -> bool:
    """Whether a value can be told from ordinary text, so that hiding it hides nothing else.

    A password such as `true` or `1234` cannot: to hide it everywhere would eat words and error
    numbers, and tell what the password is.
    """
    if not SHORTEST <= len(value) <= LONGEST or len(set(value)) < 4 or not value.strip():
        return False
    if value.isdigit() and len(value) < _LONG_NUMBER:
        return False
    bare = value.lower()
    if any(sign in bare for sign in _STANDS_FOR_ONE) or bare.startswith(("your", "<", "$")):
        return False
    if bare.startswith(("/", "~/", "./", "../")):  # the place of a file
        return False
    tail = bare.lstrip(" (0123456789")  # is it a part of what hides others?
    hidden = (f"-character {kind}) " for kind in _KINDS)
    return not tail or not any(
        one.startswith(tail) if tail != bare else tail in one for one in hidden
    )


class SecretForms:
    """All forms of some secrets."""

    def __init__(self, secrets: Iterable[Secret]) -> None:
        """Values that are not distinct are left out; see `is_distinct`."""
        kept: dict[str, Secret] = {}
        for one in secrets:
            if len(kept) < MOST and one.value not in kept and is_distinct(one.value):
                kept[one.value] = one
        made: dict[str, _Form] = {}
        for secret in kept.values():
            for form in _forms(secret):
                made.setdefault(form.text, form)
        self._forms = sorted(made.values(), key=lambda form: len(form.text))
        self.secrets = tuple(kept.values())

    def mask(self, text: str) -> str:
        """The text with a description in the place of each secret; other text is kept."""
        if len(text) < SHORTEST or not self._forms:
            return text
        for _ in range(4):  # a description may complete another secret
            spans = _joined(self._spans(text))
            if not spans:
                return text
            for span in reversed(spans):
                hidden = describe_hidden(span.secret.value, span.secret.name)
                text = text[: span.start] + hidden + text[span.end :]
        return text

    def _spans(self, text: str) -> Iterator[Span]:
        folded = _fold(text)
        yield from self._found(folded)
        if "\n" in text or "\ufffd" in text or "\\n" in text or "\r" in text or "\\r" in text:
            yield from self._wrapped(folded)

    def _found(self, folded: str) -> Iterator[Span]:
        """Secrets that are there as a whole, or cut off at an ellipsis or at the end."""
        ends = "…" in folded or "..." in folded
        for form in self._forms:
            if form.least > len(folded):
                return
            begin = form.text[: form.least]
            start = folded.find(begin)
            while start >= 0:
                if end := _end_of(folded, start, form):
                    yield _extended(folded, start, end, form)
                start = folded.find(begin, end or start + 1)
            if ends and form.least < len(form.text):
                yield from _ends_of(folded, form)

    def _wrapped(self, folded: str) -> Iterator[Span]:
        """Secrets with a line break inside, and the indent of the next line."""
        kept: list[str] = []
        places: list[int] = []
        last = 0
        for match in _BREAK.finditer(folded):
            kept.append(folded[last : match.start()])
            places.extend(range(last, match.start()))
            last = match.end()
        kept.append(folded[last:])
        places.extend(range(last, len(folded)))
        for span in self._found("".join(kept)):
            yield Span(places[span.start], places[span.end - 1] + 1, span.secret)


def _end_of(text: str, start: int, form: _Form) -> int:
    """Where the secret ends that may start here; 0 if it is none."""
    end = start + len(form.text)
    if text.startswith(form.text, start):
        return end if not form.word or _is_word(text, start, end) else 0
    end = start + form.least
    while end < len(text) and text[end] == form.text[end - start]:
        end += 1
    return end if _CUT.match(text, end) and _tells(text[start:end]) else 0


def _ends_of(text: str, form: _Form) -> Iterator[Span]:
    """The last parts of a secret that follow an ellipsis."""
    rest = form.text[-form.least :]
    at = text.find(rest)
    while at >= 0:
        start, end = at, at + len(rest)
        while start > 0 and end - start < len(form.text) - 1:
            if text[start - 1] != form.text[start - 1 - end]:
                break
            start -= 1
        if text[:start].endswith(("…", "...")) and _tells(text[start:end]):
            yield Span(start, end, form.secret)
        at = text.find(rest, end)


def _joined(spans: Iterable[Span]) -> list[Span]:
    """The spans in their order; those that overlap become one."""
    ordered: list[Span] = []
    for span in sorted(spans, key=lambda one: (one.start, -one.end)):
        if ordered and span.start < ordered[-1].end:
            ordered[-1] = ordered[-1]._replace(end=max(span.end, ordered[-1].end))
        else:
            ordered.append(span)
    return ordered


def _fold(text: str) -> str:
    """The text in small letters, with as many characters."""
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    return "".join(one.lower() if len(one.lower()) == 1 else one for one in text)


def _is_word(text: str, start: int, end: int) -> bool:
    before = start > 0 and text[start].isalnum() and text[start - 1].isalnum()
    after = end < len(text) and text[end - 1].isalnum() and text[end].isalnum()
    return not before and not after


def _extended(text: str, start: int, end: int, form: _Form) -> Span:
    while form.encoded and start > 0 and text[start - 1] in _BASE64:
        start -= 1
    while form.encoded and end < len(text) and text[end] in _BASE64:
        end += 1
    return Span(start, end, form.secret)


def _tells(part: str) -> bool:
    """Whether a part of a secret is more than a usual beginning such as `telegram`."""
    return len(part) >= _WHOLE_WORD or not part.strip("-_.").isalpha()


def _forms(secret: Secret) -> Iterator[_Form]:
    for text in {_fold(spelling) for spelling in _spellings(secret.value)}:
        if len(text) >= SHORTEST:
            yield _form(text, secret, word=len(text) < _WHOLE_WORD)
    data = secret.value.encode("utf-8", "surrogatepass")
    yield _form(data.hex(), secret)
    for text in _in_base64(data):
        yield _form(text, secret, encoded=True)


def _form(text: str, secret: Secret, *, encoded: bool = False, word: bool = False) -> _Form:
    size = len(text)
    return _Form(
        text, secret, encoded, word, min(size, _PART if size <= 2 * _PART else _WHOLE_WORD)
    )


def _spellings(value: str) -> Iterator[str]:
    """The value as it is, and as programs escape it."""
    yield value
    if value.isascii() and value.translate(_NEVER_ESCAPED).isalnum():
        return
    yield value.upper()
    yield re.sub(r"\s+", "", value)
    yield from _escaped(value)


def _escaped(value: str) -> Iterator[str]:
    import json
    from urllib.parse import quote, quote_plus

    bytes_ = value.encode("utf-8", "surrogatepass")
    for text in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        yield text
        yield text.replace("/", "\\/")
        yield json.dumps(text)[1:-1]
    yield repr(value)[1:-1]
    yield repr(bytes_)[2:-1]
    yield ascii(value)[1:-1]
    for safe in ("", "/", "/:@", "-._~!$&'()*+,;=:@/"):
        yield quote(bytes_, safe=safe)
    yield quote_plus(bytes_)
    # As html.escape does, which would load a table of all entities.
    escaped = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    yield escaped
    for double in ("&quot;", "&#34;", '"'):
        for single in ("&#x27;", "&#39;", "&apos;", "'"):
            yield escaped.replace('"', double).replace("'", single)
    yield value.replace("'", "'\"'\"'")
    yield value.replace("'", "'\\''")
    yield re.sub(r"([^\w@%+=:,./-])", r"\\\1", value)
    yield re.sub(r'(["$`\\])', r"\\\1", value)
    yield value.replace("%", "%25")


def _in_base64(data: bytes) -> Iterator[str]:
    """What base64 has of the value in any text around it, at each of its three offsets."""
    from binascii import b2a_base64

    for offset in range(3):
        shown = b2a_base64(bytes(offset) + data, newline=False).decode("ascii")
        end = (offset + len(data)) * 8 // 6
        core = shown[(0, 2, 3)[offset] : end].lower()
        if len(core) > SHORTEST:
            yield core
            yield core.translate({43: "-", 47: "_"})
