"""Redact secrets in lines of settings files before they are shown.

The structure of a line is always kept, and so is a value that cannot be a secret: whoever agrees to
a change must see it.
"""

from __future__ import annotations

import re

from hermes_doctor.core.lazy import pattern
from hermes_doctor.core.redaction import (
    clean,
    describe_hidden,
    is_chat_id,
    is_variable,
    looks_like_secret,
    redact_address,
    redact_unless_variable,
)

_KEY = r"""["']?[A-Za-z_][\w.-]{0,63}["']?"""
_PAIR = pattern(rf"^(\s*(?:-\s+)?(?:export\s+)?{_KEY}\s*[:=]\s*)(\S.*)$")
_HEADING = pattern(rf"^(\s*(?:-\s+)?{_KEY}\s*[:=]\s*)$")
_NAME = pattern(r"[A-Za-z_][\w.-]*")
_SWITCH = pattern(r"true|false|yes|no|on|off|null|~", re.IGNORECASE)
_COUNTS = pattern(
    r"(?i)(^|_)(timeout|ratio|limit|max|min|retries|interval|size|count|length|depth|turns|"
    r"seconds|minutes|hours|days|version|temperature)(_|$)"
)
_BLOCK = pattern(r"[:=-]\s*[|>][-+0-9]*\s*(#.*)?$")
_NUMBER = pattern(r"-?\d{1,7}(?:\.\d{1,4})?")
_SECRET_WORD = pattern(
    r"(?i:^(sk|pk|rk|gh[a-z]|xox[a-z]|hf|gsk|nvapi|glpat)[-_]|^eyj\w|^aiza\w)"
    r"|(?![a-z]{16,}(?![A-Za-z0-9]))[A-Za-z0-9]{16,}|^\d{6,12}:[\w-]{20,}"
    r"|^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-"
)
"""The same for one of several words."""
_SHOWN = frozenset(
    {
        "_config_version",
        "api_mode",
        "backend",
        "context_length",
        "default",
        "enabled",
        "level",
        "max_tokens",
        "mode",
        "model",
        "port",
        "provider",
        "strategy",
        "timezone",
        "transport",
    }
)
_LOGIN = pattern(r"[^\s:@/]+:[^\s@]+@")
"""A user and a password before the name of a host."""
_SECRET_NAME = pattern(
    r"(?i)key(?!board)|token|secret|pass(w|phrase|$|_)|pwd|credential|cookie|bearer|private|webhook"
    r"|signature|seed|authori[sz]ation|(^|[_.-])(pin|pw|otp|auth|login|dsn|psk|salt|creds?|ak|sk)"
    r"($|[_.-])|(^|[_.-])code$|^api$"
)
"""In the name of a setting: its value is a secret."""
_FREE = pattern(
    r"(?i)(\w*_)?(env|environment|headers?|args|command|hooks|secrets|mcp|mcp_servers|webhooks)"
)
"""Sections with settings of other programs, so the name of a secret can have any form."""
_PLAIN_VARIABLE = pattern(
    r"_(URL|HOST|PORT|MODE|MODEL|PROVIDER|ENABLED|DIR|PATH|REGION|TIMEZONE|LANGUAGE|LEVEL|TIMEOUT"
    r"|LIMIT|NAME|APP_ID|ACCOUNT_ID|TRANSPORT|BACKEND)$"
)
"""Ends of the names of variables in .env whose values are not secret."""
_NAMES_A_VARIABLE = pattern(r"(?i)(\w+_)?(key|token|secret|password)_?env|env_key|(\w+_)?key_var")
"""Settings that take the name of a variable; users sometimes paste the key itself instead."""
_REFERENCE = pattern(r"(\$\{(?:env:)?|\$|env:|)(.*?)(\}?)")
_WORD = pattern(r"""["']?[\w][\w./:-]{0,39}["']?""")
_PEOPLE = pattern(
    r"(?i)(\w+_)?(allowed_(users|chats|channels|groups|guilds|roles|rooms)|allow_from|home_channel|"
    r"chat_id|channel_id|user_id|group_id|guild_id|thread_id)"
)
"""Settings with ids of users and chats, which are not secret; the operator decides about them."""
_EMPTY = pattern(r"""[\s\[\]{}()"',;:|>.*-]+""")
"""A value of punctuation only, such as an empty list."""
_CONFLICT = pattern(r"^(<{7}|>{7}|={7}|\|{7})(\s.*)?$")
_POLICY = pattern(r"(?i)(\w+_)?(dm_policy|group_policy|unauthorized_dm_behavior)")
"""Settings whose value is one of a few words; the operator must see it to agree."""
_DASH = pattern(r"-\s+")
_ADDRESS = pattern(r"(?i)(\w+_)?base_url")
_URL = pattern(r"""["']?https?://[^\s"']+["']?""")
_PART = pattern(r"""https?://[^\s"',]+|[^\s"',{}\[\]]+""")
_CLOSED = pattern(r"""("[^"]*"|'[^']*')(\s+#.*|,)?$""")
"""A value in quotes, with a comment or a comma after it."""
_COMMENTED_OUT = pattern(r"(?:export )?[A-Z][A-Z0-9_]*=")
_ITEM = pattern(r"^(\s*-\s+)([^\s#:]+)\s*$")
_LISTED = pattern(r"^(\s*-\s+)(.+)$")
_BOT = pattern(r"\d{6,12}:[\w-]{20,}")
_ONE = pattern(r"\+?-?\d{1,20}|[\w.+@:-]{1,64}|\*")


def is_secret_name(name: str) -> bool:
    """Whether the value of a setting or variable with this name is a secret."""
    return _SECRET_NAME.search(name) is not None and not is_setting_name(name)


def is_setting_name(name: str) -> bool:
    """Whether a setting with this name has a plain value, even if it speaks of a key or a token."""
    plain = _PLAIN_VARIABLE.search(name) or _COUNTS.search(name) or _PEOPLE.fullmatch(name)
    return plain is not None or _NAMES_A_VARIABLE.fullmatch(name) is not None


def _hide_value(value: str, name: str) -> str:
    """Hide a value of a setting; quotes around it and a comma after it are kept."""
    comma = "," if value.endswith(",") else ""
    inner = value.removesuffix(",")
    quote = inner[:1] if len(inner) > 1 and inner[:1] in "\"'" and inner.endswith(inner[:1]) else ""
    inner = inner.removeprefix(quote).removesuffix(quote)
    return f"{quote}{describe_hidden(inner, name)}{quote}{comma}"


def redact_line(text: str) -> str:
    """Redact everything in one line of a settings file that could be a secret."""
    return _redact(text, strict=False)


def _redact(text: str, *, strict: bool) -> str:
    text = text.rstrip("\r\n")
    marked = text.startswith("\ufeff")
    text = text.removeprefix("\ufeff")
    return clean(("<BOM>" if marked else "") + _line(text, strict=strict).replace("\t", "<TAB>"))


def _line(text: str, *, strict: bool = False) -> str:
    """Redact one line; if strict, show only values of settings that are known not to be secret."""
    bare = text.lstrip()
    margin = text[: len(text) - len(bare)]
    if not bare or bare in ("---", "..."):
        return text
    if bare.startswith("#"):
        said = bare.lstrip("# ")
        is_variable = _COMMENTED_OUT.match(said) is not None
        return f"{margin}# {_line(said, strict=True) if is_variable else _comment(said)}"
    if conflict := _CONFLICT.match(text):
        rest = (conflict[2] or "").strip()
        return f"{conflict[1]} {describe_hidden(rest, kind='name')}" if rest else text
    pair = _PAIR.match(text) or _HEADING.match(text)
    name = _NAME.search(pair[1].strip("- ").removeprefix("export ")) if pair else None
    odd = pair is not None and "=" in pair[1] and name is not None and not name[0].isupper()
    odd = odd or re.match(r"\w+://", bare) is not None  # an address is not a name with a value
    if not pair or not name or looks_like_secret(name[0]) or bare.endswith("==") or odd:
        if _EMPTY.fullmatch(bare):
            return text
        dash = _DASH.match(bare)
        lead = dash[0] if dash else ""
        # a secret alone on a line can look like a name
        return margin + lead + describe_hidden(bare[len(lead) :], kind="line")
    head, value = pair[1], (pair[2].strip() if pair.lastindex == 2 else "")
    bare, comment = _split_comment(value)
    variable = "=" in head or name[0].isupper()  # some write "NAME: value" into .env
    strict = strict or (variable and not _PLAIN_VARIABLE.search(name[0]))
    shown = _value(name[0], bare, strict=strict)
    if comment is None:
        return head + shown
    hidden = shown != bare  # a comment beside a secret may have its former value
    said = describe_hidden(comment, kind="comment") if hidden else _comment(comment)
    return f"{head}{shown}{'  ' if bare else ''}# {said}"


def _value(name: str, bare: str, *, strict: bool) -> str:
    """Redact the value of a setting."""
    if not bare or _SWITCH.fullmatch(bare) or _EMPTY.fullmatch(bare):
        return bare
    if _PEOPLE.fullmatch(name):
        return ",".join(_person(one, strict="allow" not in name.lower()) for one in bare.split(","))
    if _NAMES_A_VARIABLE.fullmatch(name):
        quote = bare[:1] if bare[:1] in ("'", '"') and bare.endswith(bare[:1]) else ""
        inner = bare.strip(quote) if quote else bare
        parts = _REFERENCE.fullmatch(inner)
        if parts and is_variable(parts[2]):
            return bare
        return redact_unless_variable(inner)
    if _ADDRESS.fullmatch(name) and _URL.fullmatch(bare):
        return redact_address(bare)
    number = _NUMBER.fullmatch(bare) and (name in _SHOWN or _COUNTS.search(name))
    known = name in _SHOWN or _POLICY.fullmatch(name)
    if number or (known and _WORD.fullmatch(bare) and not looks_like_secret(bare)):
        return bare
    if strict or _SECRET_NAME.search(name) or _FREE.fullmatch(name):
        return _hide_value(bare, name)
    return _plain(bare)


def _plain(value: str) -> str:
    """Redact the parts of a value that look like a secret; its setting is not named like one."""
    if value[:1] in "[{" and (_SECRET_NAME.search(value) or "env" in value or "args" in value):
        return describe_hidden(value)
    if " " in value and value[:1] not in "[{" and _SECRET_NAME.search(value):
        return describe_hidden(value)  # a sentence about a secret may contain it
    if value[:1] in "!%&*@`" or (value[:1] in "\"'" and not _CLOSED.match(value)):
        return _hide_value(value, "")  # no usual value begins like this, but a password may
    if (
        value[:1] not in "[{"
        and " " not in value
        and "://" not in value
        and looks_like_secret(value)
    ):
        return _hide_value(value, "")
    return _PART.sub(_redacted_part, value)


def _redacted_part(part: re.Match[str]) -> str:
    word = part[0]
    if "://" in word:
        return redact_address(word)
    return describe_hidden(word) if _SECRET_WORD.search(word) or _LOGIN.match(word) else word


def _comment(text: str) -> str:
    """Redact a comment: all of it if it mentions a secret, else the words that look like one."""
    if _SECRET_NAME.search(text) or re.fullmatch(r"\S*\d\S*", text):
        return describe_hidden(text, kind="comment")
    return _PART.sub(_redacted_part, text)


def _person(entry: str, *, strict: bool = False) -> str:
    """Redact an entry unless it looks like a person or a chat; if strict, like an id of one."""
    bare = entry.strip(" \t\"'[]")
    usual = strict or looks_like_secret(bare) or _BOT.match(bare)
    plain = not bare or is_chat_id(bare) or (not usual and _ONE.fullmatch(bare))
    plain = plain or bool(strict and re.fullmatch(r"[@#!][\w.+-]{1,64}:[\w.-]{1,64}", bare))
    return entry if plain else entry.replace(bare, describe_hidden(bare))


def _split_comment(value: str) -> tuple[str, str | None]:
    """Split a value from the text of the comment after it."""
    if value.startswith("#"):
        return "", value.lstrip(" #")
    bare, found, comment = value.partition(" #")
    return (bare.rstrip(), comment.lstrip(" #")) if found else (value, None)


def redact_lines(texts: list[str]) -> list[str]:
    """Redact all lines of a settings file; a text over several lines is hidden completely."""
    shown: list[str] = []
    inside: int | None = None  # the indent of the name whose block of text this line is in
    quote = ""
    above: list[tuple[int, str]] = []  # the headings that this line is below, with their indents
    for text in texts:
        bare = text.lstrip()
        margin = len(text) - len(bare)
        if quote:
            shown.append(describe_hidden(bare, kind="line"))
            quote = "" if bare.rstrip().endswith(quote) else quote
            continue
        if inside is not None and (not bare or margin > inside):
            shown.append(describe_hidden(bare, kind="line") if bare else "")
            continue
        if bare and not bare.startswith("#"):
            listed = bare.startswith("- ")
            while above and (margin < above[-1][0] or (margin == above[-1][0] and not listed)):
                above.pop()
        inside = margin if _BLOCK.search(text) else None
        heading, pair = _HEADING.match(text.rstrip(" {[")), _PAIR.match(text)
        value = "" if heading else pair[2] if pair else re.sub(r"^(-\s+)+", "", bare)
        value = value.rstrip()
        if value[:1] in ("'", '"') and not _CLOSED.match(value):
            quote = value[0]
        shown.append(_below([name for _, name in above], text))
        if name := _NAME.search(heading[1]) if heading else None:
            above.append((margin, name[0]))
    return shown


def _below(above: list[str], text: str) -> str:
    """Redact a line of a file that is below these headings."""
    entry = _ITEM.match(text) if above else None
    if entry and _PEOPLE.fullmatch(above[-1]):
        return clean(entry[1] + _person(entry[2]))
    strict = any(_SECRET_NAME.search(name) or _FREE.fullmatch(name) for name in above)
    listed = _LISTED.match(text) if above and not strict else None
    if listed and not (_PAIR.match(text) or _HEADING.match(text)):
        bare, comment = _split_comment(listed[2].rstrip())
        return clean(listed[1] + _plain(bare) + (f"  # {_comment(comment)}" if comment else ""))
    return _redact(text, strict=strict)
