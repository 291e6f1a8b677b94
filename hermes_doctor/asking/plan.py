"""Decide who is asked: the running gateway if its API server can be used, else the providers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hermes_doctor.asking import gateway_door
from hermes_doctor.asking.gateway_door import Door
from hermes_doctor.asking.shown_words import secrets_of
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook, Trouble
from hermes_doctor.records.last_ask import GATEWAY, PROVIDER

if TYPE_CHECKING:
    from hermes_doctor.probes.network.request import Request
    from hermes_doctor.probes.probes import Probes
    from hermes_doctor.settings.resolved import Resolved, Route
    from hermes_doctor.settings.variables import Settings

QUESTION = "Reply with the one word: ready."
LONGEST = 4000
TOKENS = 256
"""The limit of an answer: enough for a model that thinks first, and cheap."""
_LIBRARIES = ("openai", "anthropic")
_SCHEME = re.compile(r"(?i)^(?:bearer|basic|token|apikey) +")


class AskPlan(NamedTuple):
    """Who is asked what. Contains secrets: only `render/ask.py` may show parts of it."""

    via: str
    """GATEWAY or PROVIDER."""
    words: str
    requests: Sequence[Request]
    """One for the gateway; for providers the main one and its fallbacks, in order."""
    settings: Settings
    """What decides about proxies and trust."""
    secrets: Sequence[str]
    name: str
    """The name of the first provider, for the user."""
    model: str
    door: Door | None = None
    why_direct: str = ""
    """Why the gateway itself is not asked."""
    fallbacks: Sequence[str] = ()
    """The names of the providers that are asked next if the first does not answer."""

    def __repr__(self) -> str:
        return f"AskPlan({self.via})"


def make(probes: Probes, words: str) -> AskPlan:
    """Plan one question; raise Trouble if nobody can be asked. Sends nothing."""
    from hermes_doctor.settings.variables import Settings

    words = words.strip()
    if not words or len(words) > LONGEST:
        raise Trouble(
            text("The question must have 1 to {most:,} characters. Nothing was sent.", most=LONGEST)
        )
    try:
        found = probes.resolved()
        settings = probes.settings()
    except CouldNotLook as doubt:
        raise Trouble(text("Could not ask: {reason}. Nothing was sent.", reason=doubt)) from None
    door = gateway_door.find(probes, found)
    if isinstance(door, Door):
        request = _to_gateway(found, door, words)
        nowhere = Settings({}, frozenset(), {}, ())  # no proxy: it is on this machine
        secrets = secrets_of(found, door.key)
        return AskPlan(GATEWAY, words, [request], nowhere, secrets, *_shown(request), door)
    return _direct(probes, found, settings, words, door)


def _to_gateway(found: Resolved, door: Door, words: str) -> Request:
    from hermes_doctor.probes.network.request import Request

    body = {"model": "hermes-agent", "messages": [{"role": "user", "content": words}]}
    headers = {"Authorization": f"Bearer {door.key}"} if door.key else {}
    url = f"http://{door.place}/v1/chat/completions"
    return Request(found.used or found.main, url, headers, json.dumps(body).encode())


def _direct(probes: Probes, found: Resolved, settings: Settings, words: str, why: str) -> AskPlan:
    from hermes_doctor.probes.network import request

    question = request.Question(words, TOKENS, _versions(probes))
    requests = list(request.requests(found, question))
    if not requests:
        reason = _why_nobody(found)
        raise Trouble(
            text(
                "Could not ask: {reason}, and {gateway}. Nothing was sent. "
                "See: hermes-doctor config",
                reason=reason,
                gateway=why,
            )
        )
    secrets = secrets_of(found, *_keys([value for one in requests for value in one.secrets]))
    first = _shown(requests[0])
    names = tuple(dict.fromkeys(_shown(one)[0] for one in requests[1:]))
    return AskPlan(PROVIDER, words, requests, settings, secrets, *first, None, why, names)


def _shown(request: Request) -> tuple[str, str]:
    """Return the names of a request's provider and model, for the user."""
    from hermes_doctor.probes.network.provider_trial import name_of
    from hermes_doctor.redaction import redact_words

    return redact_words(name_of(request.route)), redact_words(request.route.model.value or "")


def _keys(values: Sequence[str]) -> list[str]:
    """Return the values without a word such as `Bearer` before them, and without names of sites."""
    bare = [_SCHEME.sub("", one.strip()) for one in values]
    return [one for one in bare if "://" not in one and len(one) > 7]


def _versions(probes: Probes) -> Mapping[str, str]:
    """Return the versions of the installed packages that send requests in Hermes."""
    try:
        packages = probes.packages()
    except CouldNotLook:
        return {}
    found = {}
    for name in packages.names if packages else ():
        package, _, rest = name.partition("-")
        if package in _LIBRARIES and rest.endswith(".dist-info"):
            found[package] = rest.removesuffix(".dist-info")
    return found


def _why_nobody(found: Resolved) -> str:
    """Why no provider can be asked, in the order in which the operator would repair it."""
    from hermes_doctor.probes.network.provider_trial import name_of
    from hermes_doctor.redaction import redact_words

    main = found.main
    name = redact_words(name_of(main))
    if found.world.document.fault:
        return "config.yaml cannot be read"
    if main.trouble:
        return redact_words(main.trouble.why)
    if not main.model.value:
        return "no model is set"
    if main.key and main.key.state not in ("usable", "not needed"):
        return text("the key of {provider} is {state}", provider=name, state=_state(main))
    return text("{provider} needs a login, or its address is invalid", provider=name)


def _state(route: Route) -> str:
    assert route.key is not None
    words = {"unresolved": "a variable that is not set", "masked": "masked text"}
    return words.get(route.key.state, route.key.state)
