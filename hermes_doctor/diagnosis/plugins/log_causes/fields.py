"""Take out of an error what it has beside its cause: fields, and the reason that a server gave."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from hermes_doctor.core.lazy import pattern
from hermes_doctor.diagnosis.plugins.log_causes.cause_index import Found

_SLOT = pattern(r"\{(\w+)\}")
_HOST = r"(?:[\w-]{1,63}\.){1,8}[A-Za-z][\w-]{1,62}"
_WHERE: Mapping[str, tuple[re.Pattern[str], ...]] = {
    "port": (
        pattern(r"\('[^']{0,80}', (\d{2,5})[,)]"),
        pattern(r"(?i)\bport[=: ]{1,2}(\d{2,5})\b"),
        pattern(r"(?:\d{1,3}(?:\.\d{1,3}){3}|localhost|::1?\]?|\*|0):(\d{2,5})\b"),
    ),
    "host": (
        pattern(r"(?i)\bhost[=: ]{1,2}'?([\w.-]{3,120}[\w])"),
        pattern(rf"(?:https?|wss?)://(?:[^\s/@]{{1,80}}@)?({_HOST})"),
        pattern(rf"(?i)(?:resolve|resolving|lookup|connect to|for) '?({_HOST})\b"),
        pattern(r"'(\d{1,3}(?:\.\d{1,3}){3})', \d"),
    ),
    "path": (
        pattern(r"(?:directory|denied|system|device|files|permitted|error): '([^']{1,300})'"),
        pattern(r"(?<![\w:/])((?:~|/[\w.@+-]{1,80})(?:/[\w.@+ -]{1,80}){1,12})(?=$|['\"):, ])"),
        pattern(r"\b([A-Za-z]:\\[\w.\\ -]{1,200})"),
    ),
    "seconds": (pattern(r"(?i)(\d{1,6}(?:\.\d{1,2})?)\d{0,20} ?s(?:econds?|ec)?\b"),),
    "status": (pattern(r"\b([45]\d\d)\b"),),
}  # fmt: skip


def lacks_fields(found: Found) -> bool:
    """Tell whether the title has fields that were not found."""
    return "{" in found.cause.title and bool(_missing(found))


def _missing(found: Found) -> list[str]:
    return [name for name in _SLOT.findall(found.cause.title) if name not in found.fields]


def with_fields(found: Found, texts: Iterable[str]) -> Mapping[str, str]:
    """Return the fields of a cause; those that its title lacks are looked for in the texts."""
    missing = _missing(found)
    if not missing:
        return found.fields
    fields = dict(found.fields)
    whole = [*texts]
    for name in missing:
        for one in _WHERE.get(name, ()):
            if match := next(filter(None, map(one.search, whole)), None):
                fields[name] = match[1]
                break
    return fields


MOST, LEAST = 160, 6
"""Characters of a reason: longer ones are cut, shorter ones say nothing."""
_READ = 2000
_NAMED = pattern(
    r"(?P<escape>\\{0,3})['\"](?:message|msg|errmsg|err_msg|error_msg|errorMessage|error_message"
    r"|error_description|detail|details|description|reason|raw)(?P=escape)['\"] ?: ?"
    r"(?P=escape)(?:'(?P<single>[^'\\]{6,600})|\"(?P<double>[^\"\\]{6,600}))"
)
"""A text of an answer in JSON or as Python prints it, also as JSON inside JSON."""
_BARE = pattern(
    r"\b(?:errmsg|err_msg|error_msg|error_description|msg|reason)[=:] ?"
    r"(?P<bare>[^\s'\"{\[(][^{\n]{5,300}?)(?=, \w{1,20}[=:]|[})\]]|$)"
)
_AFTER_STATUS = pattern(
    r"\bHTTP(?: error| status)?:? [45]\d\d: (?P<first>[^\s<{\['\"][^\n<{|]{5,300})"
    r"|\(error code: \d{1,7}\): (?P<second>[^\n<{]{6,300})"
)
_FORMS = (
    (_NAMED, ('"', "'")),
    (_BARE, ("msg", "reason", "error_")),
    (_AFTER_STATUS, ("rror code", "HTTP")),
)
_SAYS_NOTHING = pattern(
    r"(?i)(?:provider returned error|(?:internal (?:server )?|bad |unknown )?(?:error|request)"
    r"|unauthori[sz]ed|forbidden|not found|ok|success|none|null)\W*"
)


def server_words(text: str) -> str:
    """Return the innermost reason that a server gave; empty if the text has none."""
    start = text[:_READ]
    for form, hints in _FORMS:
        if not any(hint in start for hint in hints):
            continue
        for match in reversed([*form.finditer(start)]):
            said = " ".join((match[match.lastgroup or 0] or "").split())
            if len(said) >= LEAST and not _SAYS_NOTHING.fullmatch(said):
                return said if len(said) <= MOST else f"{said[:MOST].rpartition(' ')[0]} …"
    return ""
