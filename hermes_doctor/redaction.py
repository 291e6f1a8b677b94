"""Redact secrets in text from settings files and logs before it is shown.

The structure of a line is always kept; a value is shown only if it cannot be a secret. What is
hidden is described by its length and kind: `(44-character key)`.
"""

from __future__ import annotations

import re

from hermes_doctor.lazy import pattern

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
_TOKEN = pattern(
    r"(?i:^[\"']?(sk|pk|rk|gh[a-z]|xox[a-z]|eyj|akia|aiza)[-_a-z0-9])"
    r"|(?![a-z]{16,}(?![A-Za-z0-9]))[A-Za-z0-9]{16,}"
)
"""A known prefix, or a long run of letters and digits that is not one word in small letters."""
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
_NAMES_A_VARIABLE = pattern(r"(?i)(\w+_)?(key|token|secret|password)_?env|env_key|(\w+_)?key_var")
"""Settings that take the name of a variable; users sometimes paste the key itself instead."""
_VARIABLE = pattern(r"[A-Z_][A-Z0-9_]{0,99}")
_REFERENCE = pattern(r"(\$\{(?:env:)?|\$|env:|)(.*?)(\}?)")
_WORD = pattern(r"""["']?[\w][\w./:-]{0,39}["']?""")
_PEOPLE = pattern(
    r"(?i)(\w+_)?(allowed_(users|chats|channels|groups|guilds|roles|rooms)|allow_from|home_channel|"
    r"chat_id|channel_id|user_id|group_id|guild_id|thread_id)"
)
"""Settings with ids of users and chats, which are not secret; the operator decides about them."""
_CHAT_ID = pattern(
    r"[+-]?\d{1,22}|[0-9A-F]{32}|(?:ou|on|oc|om)_[0-9a-f]{32}|[UWCDG][A-Z0-9]{8,12}"
    r"|[\w.+-]{1,64}@(?:im\.wechat|s\.whatsapp\.net|lid|c\.us|g\.us)"
)
"""Ids of users and chats as numbers and as QQ, Feishu, Slack, Weixin and WhatsApp write them."""
_EMPTY = pattern(r"""[\s\[\]{}()"',;:|>.*-]+""")
"""A value of punctuation only, such as an empty list."""
_CONFLICT = pattern(r"^(<{7}|>{7}|={7}|\|{7})(\s.*)?$")
_POLICY = pattern(r"(?i)(\w+_)?(dm_policy|group_policy|unauthorized_dm_behavior)")
"""Settings whose value is one of a few words; the operator must see it to agree."""
_DASH = pattern(r"-\s+")
_ADDRESS = pattern(r"(?i)(\w+_)?base_url")
_URL = pattern(r"""["']?https?://[^\s"']+["']?""")
_ITEM = pattern(r"^(\s*-\s+)([^\s#:]+)\s*$")
_BOT = pattern(r"\d{6,12}:[\w-]{20,}")
_ONE = pattern(r"\+?-?\d{1,20}|[\w.+@:-]{1,64}|\*")


def clean(text: str) -> str:
    """Replace line breaks and control characters, so that text from a file is safe to print."""
    if text.isascii() and text.isprintable():
        return text
    import unicodedata

    return "".join(
        "�" if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") else char
        for char in text
    )


def describe_hidden(value: str, name: str = "", kind: str = "value") -> str:
    """Describe a hidden value by its length and kind: `(44-character key)`.

    The kind is a word from the name of its setting, such as `token`, if the name has one.
    """
    words = ("password", "secret", "token", "key")
    kind = next((word for word in words if word in name.lower()), kind)
    return f"({len(value)}-character {kind})"


def _hide_value(value: str, name: str) -> str:
    """Hide a value of a setting; quotes around it and a comma after it are kept."""
    comma = "," if value.endswith(",") else ""
    inner = value.removesuffix(",")
    quote = inner[:1] if len(inner) > 1 and inner[:1] in "\"'" and inner.endswith(inner[:1]) else ""
    inner = inner.removeprefix(quote).removesuffix(quote)
    return f"{quote}{describe_hidden(inner, name)}{quote}{comma}"


def redact_line(text: str) -> str:
    """Redact everything in one line of a settings file that could be a secret."""
    text = text.rstrip("\r\n")
    marked = text.startswith("\ufeff")
    text = text.removeprefix("\ufeff")
    return clean(("<BOM>" if marked else "") + _line(text).replace("\t", "<TAB>"))


def _line(text: str) -> str:
    bare = text.lstrip()
    margin = text[: len(text) - len(bare)]
    if not bare or bare in ("---", "..."):
        return text
    if bare.startswith("#"):
        return f"{margin}# {describe_hidden(bare.lstrip('# '), kind='comment')}"
    if conflict := _CONFLICT.match(text):
        rest = (conflict[2] or "").strip()
        return f"{conflict[1]} {describe_hidden(rest, kind='name')}" if rest else text
    pair = _PAIR.match(text) or _HEADING.match(text)
    name = _NAME.search(pair[1].strip("- ").removeprefix("export ")) if pair else None
    odd = pair is not None and "=" in pair[1] and name is not None and not name[0].isupper()
    if not pair or not name or _TOKEN.search(name[0]) or bare.endswith("==") or odd:
        if _EMPTY.fullmatch(bare):
            return text
        dash = _DASH.match(bare)
        lead = dash[0] if dash else ""
        # a secret alone on a line can look like a name
        return margin + lead + describe_hidden(bare[len(lead) :], kind="line")
    head, value = pair[1], (pair[2].strip() if pair.lastindex == 2 else "")
    bare, comment = _without_comment(value)
    if not bare or _SWITCH.fullmatch(bare) or _EMPTY.fullmatch(bare):
        return head + bare + comment
    if _PEOPLE.fullmatch(name[0]):
        return head + _people(bare, strict="allow" not in name[0].lower()) + comment
    if _NAMES_A_VARIABLE.fullmatch(name[0]):
        return head + _reference(bare) + comment
    if _ADDRESS.fullmatch(name[0]) and _URL.fullmatch(bare):
        return head + redact_address(bare) + comment
    number = _NUMBER.fullmatch(bare) and (name[0] in _SHOWN or _COUNTS.search(name[0]))
    known = name[0] in _SHOWN or _POLICY.fullmatch(name[0])
    word = known and _WORD.fullmatch(bare) and not _TOKEN.search(bare)
    return head + (bare if number or word else _hide_value(bare, name[0])) + comment


def _people(value: str, *, strict: bool) -> str:
    """Redact those entries of a list of ids that look like a key or a token."""
    return ",".join(_person(one, strict=strict) for one in value.split(","))


def _person(entry: str, *, strict: bool = False) -> str:
    """Redact an entry unless it looks like a person or a chat; if strict, like an id of one."""
    bare = entry.strip(" \t\"'[]")
    usual = strict or _TOKEN.search(bare) or _BOT.match(bare)
    plain = not bare or is_chat_id(bare) or (not usual and _ONE.fullmatch(bare))
    plain = plain or bool(strict and re.fullmatch(r"[@#!][\w.+-]{1,64}:[\w.-]{1,64}", bare))
    return entry if plain else entry.replace(bare, describe_hidden(bare))


def is_chat_id(word: str) -> bool:
    """Whether a word has the form of an id of a user or a chat, which is not a secret."""
    return _CHAT_ID.fullmatch(word) is not None


def _without_comment(value: str) -> tuple[str, str]:
    """Split a value from the comment after it; the comment's text is redacted."""
    bare, found, _ = value.partition(" #")
    if not found and not value.startswith("#"):
        return value, ""
    comment = value[len(bare) :] if found else value
    described = describe_hidden(comment.lstrip(" #"), kind="comment")
    return (bare.rstrip(), f"  # {described}") if found else ("", f"# {described}")


def looks_like_secret(name: str) -> bool:
    """Whether a text in the place of a name looks like a key or a token."""
    return bool(_TOKEN.search(name))


def is_variable(name: str) -> bool:
    """Whether a value has the form of a variable's name and not of a short key.

    A name is in capitals and has several words, or ends with a word such as KEY. A long word with
    letters and digits (`AB12CD34`) counts as a key.
    """
    if not _VARIABLE.fullmatch(name) or re.match(_KEY_LIKE, name):
        return False
    parts = [part for part in name.split("_") if part]
    mixed = [part for part in parts if sum(map(str.isdigit, part)) >= 3 and not part.isdigit()]
    named = len(parts) > 1 or name.endswith(("KEY", "TOKEN", "SECRET"))
    return (
        named and not any(len(part) >= 8 for part in mixed) and not name.replace("_", "").isdigit()
    )


def redact_unless_variable(name: str) -> str:
    """Return the name of a variable as it is; of any other value only its length."""
    return name if is_variable(name) else describe_hidden(name)


def _reference(value: str) -> str:
    """Do the same as `redact_unless_variable` for a value in quotes or in the form `${NAME}`."""
    quote = value[:1] if value[:1] in ("'", '"') and value.endswith(value[:1]) else ""
    inner = value.strip(quote) if quote else value
    parts = _REFERENCE.fullmatch(inner)
    if parts and is_variable(parts[2]):
        return value
    return redact_unless_variable(inner)


def redact_name(name: str) -> str:
    """Return the name of a variable, redacted if it looks like a key or a token."""
    return describe_hidden(name, kind="name") if looks_like_secret(name) else clean(name)


_LIKE_A_KEY = pattern(r"[0-9A-F]{32}")
"""The ids of QQ have the form of a key."""
_BEFORE_ID = pattern(r"(?i)\b(?:user|chat|openid|operator|group|member|friend|sender)\w*[:= ]+$")


def is_known_id(found: re.Match[str], word: str) -> bool:
    """Whether a word is the id of a user or chat; one like a key needs a word such as `user`."""
    if not is_chat_id(word):
        return False
    return not _LIKE_A_KEY.fullmatch(word) or bool(
        _BEFORE_ID.search(found.string[max(0, found.start() - 40) : found.start()])
    )


_KEY_LIKE = (
    r"(?i:(?:sk|pk|rk|gh[a-z]|xox[a-z]|hf|gsk|nvapi|glpat)[-_]\S*\d|eyj\S{12,}|aiza\S{12,})"
    r"|.*?(?=[A-Za-z]*\d)[A-Za-z0-9]{16,}"
)
"""Not compiled here, because `check` does not use it."""


def redact_words(text: str) -> str:
    """Redact only those words of a text that look like a key or a token."""
    return clean(
        re.sub(
            r"[A-Za-z0-9_-]{6,}",
            lambda word: (
                describe_hidden(word[0], kind="key")
                if re.match(_KEY_LIKE, word[0]) and not is_known_id(word, word[0])
                else word[0]
            ),
            text,
        )
    )


def redact_address(text: str) -> str:
    """Redact the secret parts of a URL: name and password, query, key-like parts of the path."""
    scheme, there, rest = text.partition("://")
    if not there:
        scheme, rest = "", text
    place, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    if "@" in path and ":" in place and not place.rpartition(":")[2].isdigit():
        place, slash, path = f"@{path.rpartition('@')[2]}".partition("/")  # a password with a slash
    _, at, host = place.rpartition("@")
    login = rest.rpartition("@")[0] if at else ""
    cut = re.search(r"[?#]", rest)
    query = f"{cut[0]}{describe_hidden(rest[cut.end() :], kind='query')}" if cut else ""
    return (
        f"{scheme}{there}{describe_hidden(login, kind='login') + at if at else ''}"
        f"{clean(host) if there else redact_words(host)}"
        f"{slash}{'/'.join(map(_part, path.split('/')))}{query}"
    )


def _part(text: str) -> str:
    """Redact one part of a path if it contains a run of letters and digits as long as a key."""
    if re.search(r"[A-Za-z0-9]{20,}", text):
        return describe_hidden(text, kind="key")
    return redact_words(text)


def redact_lines(texts: list[str]) -> list[str]:
    """Redact all lines of a settings file; a text over several lines is hidden completely."""
    shown: list[str] = []
    inside: int | None = None  # the indent of the name whose block of text this line is in
    quote = ""
    people: int | None = None  # the indent of the list of ids whose entry this line may be
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
        entry = _ITEM.match(text) if people is not None and margin >= people else None
        if entry:
            shown.append(clean(entry[1] + _person(entry[2])))
            continue
        heading = _HEADING.match(text)
        name = _NAME.search(heading[1]) if heading else None
        people = margin if name and _PEOPLE.fullmatch(name[0]) else None
        inside = margin if _BLOCK.search(text) else None
        item = re.sub(r"^(-\s+)+", "", bare)
        value = item if item[:1] in ("'", '"') else re.split(r"[:=]\s+|=", item, maxsplit=1)[-1]
        value = value.rstrip()
        if value[:1] in ("'", '"') and (len(value) == 1 or not value.endswith(value[0])):
            quote = value[0]
        shown.append(redact_line(text))
    return shown
