"""Redact secrets in texts from logs and from servers, and keep the words of an error."""

from __future__ import annotations

import re

from hermes_doctor.core.lazy import pattern
from hermes_doctor.core.redaction import clean, describe_hidden, is_known_id

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
