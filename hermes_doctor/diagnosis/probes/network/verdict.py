"""Interpret the answer of a provider.

A verdict does not contain the provider's words, because some repeat the key: only the status, and
the name of the error if it is a known one. `error_text` and `answer_text` return the words, which
must be redacted before they are shown. Only a message counts as an answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hermes_doctor.core.lazy import NamedTuple, pattern

OK, KEY, MONEY, REFUSED, MODEL, ADDRESS, LIMIT, DOWN, UNSURE = (
    "ok",
    "key",
    "money",
    "refused",
    "model",
    "address",
    "limit",
    "down",
    "unsure",
)
CHOICES, CONTENT, OUTPUT = "choices", "content", "output"
"""The field that contains the message in each protocol."""
_NAMES = (
    "access_terminated_error api_error arrearage authentication_error bad_response_status_code "
    "billing_hard_limit_reached billing_not_active content_filter context_length_exceeded "
    "engine_overloaded_error exceeded_current_quota_error failed_precondition forbidden "
    "get_channel_failed insufficient_balance insufficient_credits insufficient_quota "
    "insufficient_user_quota internal internal_error internal_server_error invalid_api_key "
    "invalid_argument invalid_authentication_error invalid_iam_token invalid_parameter_error "
    "invalid_request invalid_request_error invalid_token missing_api_key model_not_exist "
    "model_not_found model_not_supported new_api_error not_found not_found_error one_api_error "
    "overloaded overloaded_error payment_required permission_denied permission_denied_error "
    "permission_error quota_exceeded rate_limit_error rate_limit_exceeded "
    "rate_limit_reached_error request_timeout request_too_large resource_exhausted "
    "resource_not_found_error server_error service_unavailable timeout timeout_error "
    "token_expired token_quota_exhausted too_many_requests unauthenticated unauthorized "
    "unavailable unknown_error unsupported_country unsupported_country_region_territory "
    "unsupported_parameter unsupported_value upstream_error user_not_found"
)
"""Error names that may be shown. Any other text may repeat the key."""
_KNOWN = frozenset(_NAMES.split())
_MONEY = pattern(
    r"insufficient[_ ](?:[a-z]{1,20}[_ ])?(?:quota|balance|credit|funds)|billing|arrearage"
    r"|exceeded your current quota|quota is not enough|out of credits|额度|余额|payment required"
)
_MODEL = pattern(
    r"model_not_found|model_not_exist|not a valid model|no such model|unknown model|invalid model"
    r"|model[^.]{0,80}(?:does not exist|not found|not exist|not supported|unavailable|deprecated"
    r"|not available|decommissioned|retired)|not_found_error"
    r"|模型.{0,80}(?:不存在|无可用渠道)|模型不存在"
)
_BAD_KEY = pattern(
    r"api[_ ]key[_ ](?:not[_ ])?(?:in)?valid|(?:invalid|bad|wrong|missing|no)[_ ](?:api[_ ])?key"
    r"|incorrect api key|(?:invalid|expired)[_ ]token|token[_ ](?:is[_ ])?(?:invalid|expired)"
    r"|unauthori[sz]ed|unauthenticated|authentication|login fail|无效的令牌"
)
_LIMIT = pattern(r"rate[_ ]limit|too[_ ]many[_ ]requests")
_OTHER_LIMIT = b"max_completion_tokens"
_PAGE = (b"<!doctype", b"<html", b"<?xml")


class ProviderVerdict(NamedTuple):
    """What an answer means, and the part of it that may be shown."""

    kind: str
    status: int
    message: str
    """The provider's name for the error, or what came instead of an answer."""


def judge(status: int, body: bytes, message_field: str = CHOICES) -> ProviderVerdict:
    """Return the verdict on one answer; `message_field` would contain the message."""
    found = _json(body)
    said = _short(found) if found is not None else _instead(body)
    words = _words(found).lower()
    if 300 <= status < 400:
        return ProviderVerdict(ADDRESS, status, "a redirect, which is not followed")
    if status < 300:
        if found is None:
            return ProviderVerdict(ADDRESS, status, said)
        error = _error(found)
        if not error and _is_message(found, message_field):
            return ProviderVerdict(OK, status, "")
        code = error.get("code") or found.get("code")
        if isinstance(code, int) and 400 <= code < 600:
            return ProviderVerdict(_refusal(code, words, spoken=True), code, said)
        return ProviderVerdict(_by_words(words) or UNSURE, status, said or "no message in it")
    return ProviderVerdict(_refusal(status, words, spoken=found is not None), status, said)


def wants_other_limit(status: int, body: bytes) -> bool:
    """Tell whether the request was refused only for the name of its token limit."""
    return status == 400 and _OTHER_LIMIT in body


def error_text(body: bytes) -> str:
    """Return the provider's own words about an error, which may contain secrets."""
    found = _json(body)
    if found is None:
        return ""
    said = [_error(found).get("message"), *(found.get(k) for k in ("message", "detail", "msg"))]
    return next((one for one in said if isinstance(one, str) and one.strip()), "")


def answer_text(body: bytes, message_field: str) -> str:
    """Return the words of a message, which may contain secrets; empty if it has none."""
    items = (_json(body) or {}).get(message_field)
    found = items if isinstance(items, list) else []
    if message_field == CHOICES:
        first = found[0] if found and isinstance(found[0], dict) else {}
        failure = first.get("message")
        found = [failure] if isinstance(failure, dict) else []
    return " ".join(_texts(found))


def _texts(parts: list[Any]) -> Iterator[str]:
    """Yield the texts of a message's parts, which may have parts themselves."""
    for part in parts:
        for said in (part.get("text"), part.get("content")) if isinstance(part, dict) else ():
            if isinstance(said, str):
                yield said
            elif isinstance(said, list):
                yield from (
                    one["text"]
                    for one in said
                    if isinstance(one, dict) and isinstance(one.get("text"), str)
                )


def _is_message(found: dict[str, Any], place: str) -> bool:
    """Tell whether there is a message; with one token its text may be empty."""
    value = found.get(place)
    if not isinstance(value, list):
        return False
    whole = (place, found.get("type") or found.get("object"))
    return bool(value) or whole in ((CONTENT, "message"), (OUTPUT, "response"))


def _refusal(status: int, words: str, *, spoken: bool) -> str:
    if status == 401:
        return KEY
    if status == 402 or (status in (403, 429) and _MONEY.search(words)):
        return MONEY
    if status == 403:
        return REFUSED
    if status == 429:
        return LIMIT
    if status in (400, 422) and spoken:
        return _by_words(words) or UNSURE  # some providers check the message before the key
    if _MODEL.search(words):
        return MODEL
    return ADDRESS if status in (404, 405) else DOWN


def _by_words(words: str) -> str | None:
    """Return what the words are about, if the status does not tell."""
    every = ((_MONEY, MONEY), (_BAD_KEY, KEY), (_MODEL, MODEL), (_LIMIT, LIMIT))
    return next((kind for known, kind in every if known.search(words)), None)


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
    """Return the error of an answer, which providers put in different places."""
    error = found.get("error") or found.get("errors")
    if isinstance(error, list) and error:
        error = error[0] if isinstance(error[0], dict) else str(error[0])
    if isinstance(error, dict):
        return error
    if error:
        return {"message": str(error)}
    base = found.get("base_resp")
    if isinstance(base, dict) and base.get("status_code"):
        return {"message": base.get("status_msg")}
    choices = found.get(CHOICES)
    first = choices[0] if isinstance(choices, list) and choices else None
    inner = first.get("error") if isinstance(first, dict) else None
    return inner if isinstance(inner, dict) else {}


def _short(found: dict[str, Any]) -> str:
    """Return the error's name if it is a known one."""
    error = _error(found)
    said = [str(error.get(key)).lower() for key in ("code", "type", "status")]
    return next((one for one in said if one in _KNOWN), "")


def _words(found: dict[str, Any] | None) -> str:
    """Return all that the answer says about the error, to be searched but not shown."""
    if found is None:
        return ""
    error = _error(found)
    values = [error.get(k) for k in ("code", "type", "status", "message")]
    values += [found.get(k) for k in ("code", "message", "detail", "msg")]
    return " ".join(str(value)[:2000] for value in values if value)


def _instead(body: bytes) -> str:
    if body.lstrip()[:9].lower().startswith(_PAGE):
        return "a web page instead of an answer"
    return "nothing" if not body.strip() else "something that is not JSON"
