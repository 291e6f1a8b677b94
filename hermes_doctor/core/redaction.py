"""Redact secrets in words and addresses before they are shown.

What is hidden is described by its length and kind: `(44-character key)`.
"""

from __future__ import annotations

import re

from hermes_doctor.core.lazy import pattern
from hermes_doctor.core.outgoing import clean as clean
from hermes_doctor.core.secret_forms import describe_hidden as describe_hidden

_TOKEN = pattern(
    r"(?i:^[\"']?(sk|pk|rk|gh[a-z]|xox[a-z]|eyj|akia|aiza)[-_a-z0-9])"
    r"|(?![a-z]{16,}(?![A-Za-z0-9]))[A-Za-z0-9]{16,}"
)
"""A known prefix, or a long run of letters and digits that is not one word in small letters."""
_VARIABLE = pattern(r"[A-Z_][A-Z0-9_]{0,99}")
_CHAT_ID = pattern(
    r"[+-]?\d{1,22}|[0-9A-F]{32}|(?:ou|on|oc|om)_[0-9a-f]{32}|[UWCDG][A-Z0-9]{8,12}"
    r"|[\w.+-]{1,64}@(?:im\.wechat|s\.whatsapp\.net|lid|c\.us|g\.us)"
)
"""Ids of users and chats as numbers and as QQ, Feishu, Slack, Weixin and WhatsApp write them."""


def is_chat_id(word: str) -> bool:
    """Whether a word has the form of an id of a user or a chat, which is not a secret."""
    return _CHAT_ID.fullmatch(word) is not None


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


def redact_name(name: str) -> str:
    """Return the name of a variable, redacted if it looks like a key or a token."""
    return describe_hidden(name, kind="name") if looks_like_secret(name) else clean(name)


_LIKE_A_KEY = pattern(r"[0-9A-F]{32}")
"""The ids of QQ have the form of a key."""
_BEFORE_ID = pattern(r"(?i)\b(?:user|chat|openid|operator|group|member|friend|sender)\w*[:= ]+$")


def is_known_id(match: re.Match[str], word: str) -> bool:
    """Whether a word is the id of a user or chat; one like a key needs a word such as `user`."""
    if not is_chat_id(word):
        return False
    return not _LIKE_A_KEY.fullmatch(word) or bool(
        _BEFORE_ID.search(match.string[max(0, match.start() - 40) : match.start()])
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
