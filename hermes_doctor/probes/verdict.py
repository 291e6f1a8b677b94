"""What the answer of a provider means.

The words of the provider stay out of it: some repeat the key. Only its status, and the short name
that it gives to the error, are told on.
"""

from __future__ import annotations

from typing import Any

from hermes_doctor.patterns import pattern
from hermes_doctor.values import NamedTuple

OK, KEY, MONEY, REFUSED, MODEL, ADDRESS, LIMIT, DOWN = (
    "ok",
    "key",
    "money",
    "refused",
    "model",
    "address",
    "limit",
    "down",
)
_NAME = pattern(r"[a-z][a-z_]{2,39}")
_MONEY = pattern(
    r"insufficient[_ ](?:user[_ ])?(?:quota|balance|credit|funds)|billing"
    r"|exceeded your current quota|quota is not enough|out of credits|额度|余额|payment required"
)
_MODEL = pattern(
    r"model_not_found|model_not_exist|not a valid model|no such model|unknown model|invalid model"
    r"|model[^.]{0,80}(?:does not exist|not found|not exist|not supported|unavailable|deprecated"
    r"|decommissioned|retired)|not_found_error|模型.{0,80}(?:不存在|无可用渠道)|模型不存在"
)
_BAD_KEY = pattern(
    r"api[_ ]key[_ ](?:not[_ ])?(?:in)?valid|invalid[_ ]api[_ ]key|incorrect api key"
)
_PAGE = (b"<!doctype", b"<html", b"<?xml")


class Verdict(NamedTuple):
    """What an answer means, and the little of it that may be shown."""

    kind: str
    status: int
    said: str
    """The provider's own name of the error, or what came instead of an answer."""


def judge(status: int, body: bytes) -> Verdict:
    """The verdict on one answer."""
    found = _json(body)
    said = _short(found) if found is not None else _instead(body)
    words = _words(found).lower()
    if 300 <= status < 400:
        return Verdict(ADDRESS, status, "a redirect, which is not followed")
    if status < 300:
        if found is None:
            return Verdict(ADDRESS, status, said)
        error = _error(found)
        if not error:
            return Verdict(OK, status, "")
        code = error.get("code")
        return judge(code if isinstance(code, int) and 400 <= code < 600 else 500, body)
    return Verdict(_refusal(status, words, found is not None), status, said)


def _refusal(status: int, words: str, spoken: bool) -> str:
    if status == 401 or (status == 400 and _BAD_KEY.search(words)):
        return KEY
    if status == 402 or (status in (403, 429) and _MONEY.search(words)):
        return MONEY
    if status == 403:
        return REFUSED
    if status == 429:
        return LIMIT
    if _MODEL.search(words):
        return MODEL
    if status in (404, 405):
        return ADDRESS
    if status in (400, 422) and spoken:
        return OK  # it knows the key and the model, and does not like our few words
    return DOWN


def _json(body: bytes) -> dict[str, Any] | None:
    import json

    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(found, list) and found and isinstance(found[0], dict):
        found = found[0]  # as Google wraps errors
    return found if isinstance(found, dict) else None


def _error(found: dict[str, Any]) -> dict[str, Any]:
    error = found.get("error")
    if isinstance(error, dict):
        return error
    return {"message": error} if isinstance(error, str) and error else {}


def _short(found: dict[str, Any]) -> str:
    """The error's own name; nothing that has digits, capitals or a key's length."""
    error = _error(found)
    for key in ("code", "type", "status"):
        value = error.get(key)
        if isinstance(value, str) and _NAME.fullmatch(value.lower()):
            return value.lower()
    return ""


def _words(found: dict[str, Any] | None) -> str:
    """All that the answer says of the error, to be searched and not to be shown."""
    if found is None:
        return ""
    error = _error(found)
    values = [error.get(k) for k in ("code", "type", "status", "message")]
    values += [found.get(k) for k in ("code", "message", "detail", "msg")]
    return " ".join(str(value)[:2000] for value in values if value)


def _instead(body: bytes) -> str:
    if body.lstrip()[:9].lower().startswith(_PAGE):
        return "a web page instead of an answer"
    return "nothing" if not body.strip() else "something that is no JSON"
