"""Redact secrets in words, addresses and texts of logs before they are shown.

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


_SPOKEN = pattern(
    r"""(?ix)
    (?P<url>\b[a-z][a-z0-9+.-]*://)(?P<login>[^\s/@]+|[^\s/@:]*:[^\s@"'<>]{1,200})(?=@)
    | (?P<path>\b[a-z][a-z0-9+.-]*://[^\s"'<>?@]{1,200}?/)      # a key as a part of an address
        (?P<part>(?=[\w-]{0,100}\d)(?=[\w-]{0,100}[a-z])[\w-]{16,}[^\s"'<>]*)
    | (?P<query>[?&][\w.-]*=)(?P<sent>[^\s&"'<>]+)              # what an address hands over
    | (?P<scheme>\b(?:bearer|basic|bot)\s+)(?P<token>[\w.~+/=-]{8,})
    | (?P<named>\b[\w-]*(?:key(?!board|word|error)|token(?!iz|error)|secret|passw(?:or)?d
        |authorization|cookie|credential(?!s?error))[\w-]*["']?\s*[:=]\s*["'(\[<]{0,3}(?:(?:bearer|basic|bot)\s+)?)
        (?P<value>[^\s"',;)}\]>]+)
    | (?P<key>\b(?:sk|pk|rk|gh[a-z]|xox[a-z]|github_pat|glpat|hf|gsk|nvapi|fw|xai|r8|pplx|tgp)
        [-_][\w-]{6,}
    | \b[0-9a-f]{32}\.\w{16} | \b[\w-]{23,28}\.[\w-]{6}\.[\w-]{27,}
    | \beyJ[\w.-]{16,} | \b(?:AKIA|AIza)[\w-]{12,} | (?<!\d)\d{6,12}:[\w-]{30,}
    | (?<![\w/.-])(?=[\w+/-]*\d)(?=[\w+/-]*[a-z])(?=[\w+/-]*[A-Z])[\w+/-]{28,}={0,2}
        (?![\w/-]|\.\w|@im\.wechat))
    """
)
_ERROR_WORD = pattern(
    r"(?i)none|null|true|false|missing|invalid|expired|required|empty|not|is|are|was|unauthorized|"
    r"incorrect|wrong|revoked|rejected|refused|denied|must|no|unknown|field|http|error|errno|failed|"
    r"limit|exceeded|unset|undefined|the|a|an|all|bad|too|name|code|status|client|server|service|"
    r"request|cannot|could|unable|connect|connection|network|remote|host|peer|ssl|eof|read|timed|"
    r"timeout|temporary|permission|internal|illegal|expecting|unexpected|[45]\d\d|-\d{1,5}|"
    r"\d+-character"
)
"""Words with which an error continues after `token:`; they are not the token."""
_ERROR_NAME = pattern(
    r"(?:\w{1,40}\.){0,5}[A-Z][A-Za-z]{0,40}(?:Error|Exception|Timeout|Refused|Denied|Closed)\W?"
    r"|E(?:AI_)?[A-Z]{4,12}|[A-Z]{2,20}(?:_[A-Z]{2,20}){1,4}"
)
"""Names of errors, such as `httpx.ConnectError`, ECONNREFUSED and CERTIFICATE_VERIFY_FAILED."""
_HOST = pattern(
    r"\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?"
    r"|(?:[a-z][a-z0-9-]{0,20}\.){1,4}(?:ai|cn|com|dev|internal|io|lan|local|net|org)(?::\d{1,5})?"
)
_ERROR_CODE = pattern(r"-?\d{1,6}")
_CODE_AFTER = pattern(r"(?i)(?:tokens\S*|(?:token|key)[\"']?:\s?[\"']?)$|tokens[\"']?\s*[:=]")
"""Names after which a short number is a code or an amount; after others it may be a secret."""
_PASSWORD = pattern(r"(?i)passw|secret")
"""Names whose secret may look like a host or a name in capitals."""
_SECRET = pattern(r"(?i)key|token|secret|sig|passw|auth|login|cookie")


def redact_log_text(text: str) -> str:
    """Redact everything in a text from a log that looks like a secret.

    Punctuation, error codes and the words of an error are kept.
    """
    return clean(_SPOKEN.sub(_redact_spoken, text))


def _redact_spoken(match: re.Match[str]) -> str:
    before = match["url"] or match["path"] or match["query"] or match["scheme"] or match["named"]
    if match["login"]:
        return f"{before}{describe_hidden(match['login'], kind='login')}"
    if match["key"] and is_known_id(match, match["key"]):
        return match[0]
    if (
        match["query"]
        and _ERROR_CODE.fullmatch(match["sent"])
        and not _SECRET.search(match["query"])
    ):
        return match[0]
    if match["named"] and _is_error(match["named"], match["value"]):
        return match[0]
    secret = match["part"] or match["sent"] or match["token"] or match["value"] or match["key"]
    end = secret[len(secret.rstrip(".:!?")) :] if match["value"] else ""
    kind = "value" if match["query"] or match["named"] else "token" if match["scheme"] else "key"
    return f"{before or ''}{describe_hidden(secret.removesuffix(end), before or '', kind)}{end}"


def _is_error(name: str, value: str) -> bool:
    """Whether the text after a name such as `token:` belongs to an error and is not the token."""
    value = value.rstrip(".:!?")
    if not any(char.isalnum() for char in value) or _ERROR_WORD.fullmatch(value):
        return True
    if _CODE_AFTER.search(name) and _ERROR_CODE.fullmatch(value):
        return True
    if _PASSWORD.search(name):
        return False
    return bool(_ERROR_NAME.fullmatch(value) or _HOST.fullmatch(value))
