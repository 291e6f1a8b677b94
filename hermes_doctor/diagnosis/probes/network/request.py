"""Build the request that shows whether a provider would serve the gateway.

By default it sends one word and asks for one token (16 where that is the minimum), in the route's
protocol. A list of models would cost nothing, but many relays give it to anyone: it shows neither
an empty account nor an unknown model.

No request is made where the key is not sent in a header or would go to the wrong host: logins,
Azure, Bedrock, and keys that older releases send to another company's host.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hermes_doctor.core.lazy import EMPTY, NamedTuple
from hermes_doctor.diagnosis.probes.network import verdict
from hermes_doctor.diagnosis.probes.network.reach import Trust
from hermes_doctor.hermes.settings import request_route, resolved, urls
from hermes_doctor.hermes.settings.document import ENV, PROCESS, RequestSettings, Unresolved
from hermes_doctor.hermes.settings.inputs import SettingInputs
from hermes_doctor.hermes.settings.resolved import Resolved, Route

MOST = 8
"""The maximum number of providers that are asked."""
_PLACES = {urls.MESSAGES: verdict.CONTENT, urls.RESPONSES: verdict.OUTPUT}
_SENT = ("usable", "not needed")
_GENERAL = {"OPENAI_API_KEY": "openai.com", "OPENROUTER_API_KEY": "openrouter.ai"}
_BEARER = ("api.minimax.io", "api.minimaxi.com")
_FALSE = ("false", "0", "no", "off")
_FEWEST = 16
"""The smallest limit of tokens that the protocol of responses allows."""
_HOST = re.compile(r"https?://[^/?#@\\\s]+(?:[/?#]|$)")
"""A host without user and password before it: those would replace the key."""


class Question(NamedTuple):
    """What is sent, and how long the answer may be."""

    words: str = "Hi"
    tokens: int = 1
    libraries: Mapping[str, str] = EMPTY
    """The versions of the packages that would send it in Hermes; empty to send our own name."""


PING = Question()


class Request(NamedTuple):
    """A request with its key, of which only the route may be shown."""

    route: Route
    url: str
    headers: Mapping[str, str]
    body: bytes
    trust: Trust = Trust()
    secrets: tuple[str, ...] = ()
    """The key, and the values of the headers in config.yaml, which can be keys."""

    def __repr__(self) -> str:
        return f"Request({self.route.path})"

    @property
    def place(self) -> str:
        """The field of the answer that contains the message."""
        mode = self.route.api_mode.value if self.route.api_mode else urls.CHAT
        return _PLACES.get(mode or "", verdict.CHOICES)

    def otherwise(self) -> Request:
        """Return the request with the newer name of the token limit, which some models require."""
        body = json.loads(self.body)
        if "max_tokens" in body and self.place == verdict.CHOICES:
            body["max_completion_tokens"] = body.pop("max_tokens")
        return self._replace(body=json.dumps(body).encode())


def requests(found: Resolved, question: Question = PING) -> Iterator[Request]:
    """Yield one request for each provider that a message may use, in order."""
    seen: set[tuple[str, str]] = set()
    for route, used in _routes(found):
        same = (str(used.base_url), str(used.key))
        made = request(found.world, route, used, question)
        if made and same not in seen and len(seen) < MOST:
            seen.add(same)
            yield made


def _routes(found: Resolved) -> Iterator[tuple[Route, RequestSettings]]:
    world = found.world
    if not found.main.trouble:
        yield found.main, request_route.resolve(world, request_route.requested_provider(world)[0])
    links = {link.path: link for link in resolved.fallback_chain(world)}
    for route in found.fallback:
        try:
            yield route, links[route.path].resolve(world)
        except Unresolved:
            continue


def request(
    inputs: SettingInputs, route: Route, used: RequestSettings, question: Question = PING
) -> Request | None:
    """Return the request of one route; None if none is sent."""
    if route.key is None or route.key.state not in _SENT or not route.model.value:
        return None
    if not _HOST.match(used.base_url) or urls.fault(used.base_url) or not used.key.isascii():
        return None
    if _is_login(inputs, used) or _is_strangers(used):
        return None
    asked = _asked(used, route.model.value, question)
    if asked is None:
        return None
    url, headers, body = asked
    block = _block(inputs, used.base_url) if inputs.release.since(0, 18, 1) else EMPTY
    headers |= request_route.added_headers(inputs, used, question.libraries)
    written = request_route.model_headers(inputs, used)
    written |= request_route.configured_headers(block, "extra_headers")
    headers |= written
    if any(char in f"{name}{value}" for name, value in headers.items() for char in "\r\n\0"):
        return None
    secrets = (str(used.key), *written.values())
    flag, bundle = block.get("ssl_verify"), block.get("ssl_ca_cert")
    off = flag is False or (isinstance(flag, str) and flag.strip().lower() in _FALSE)
    return Request(
        route,
        url,
        headers,
        json.dumps(body).encode(),
        Trust(not off, bundle.strip() if isinstance(bundle, str) and bundle.strip() else None),
        secrets,
    )


def _asked(
    used: RequestSettings, model: str, question: Question
) -> tuple[str, dict[str, str], dict[str, Any]] | None:
    base, said = used.base_url.rstrip("/"), [{"role": "user", "content": question.words}]
    tokens = question.tokens
    bearer = {"Authorization": f"Bearer {used.key}"}
    if used.api_mode == urls.MESSAGES:
        headers = {"anthropic-version": "2023-06-01"}
        headers |= bearer if urls.host(base) in _BEARER else {"x-api-key": str(used.key)}
        body = {"model": model, "max_tokens": tokens, "messages": said}
        return re.sub(r"/v1$", "", base) + "/v1/messages", headers, body
    if used.api_mode == urls.RESPONSES:
        body = {"model": model, "input": question.words, "store": False}
        body["max_output_tokens"] = max(tokens, _FEWEST)
        return f"{base}/responses", bearer, body
    if used.api_mode == urls.CHAT:
        if urls.host(base) == "generativelanguage.googleapis.com" and not base.endswith("/openai"):
            base += "/openai"
        body = {"model": model, "max_tokens": tokens, "messages": said}
        return f"{base}/chat/completions", bearer, body
    return None


def _is_login(inputs: SettingInputs, used: RequestSettings) -> bool:
    facts = inputs.release.registry.get(used.provider)
    if used.provider == "copilot" or (facts and facts["kind"] != "api_key"):
        return True
    own = urls.belongs(used.base_url, "anthropic.com") and not used.key.startswith("sk-ant-api")
    return own or urls.belongs(used.base_url, "azure.com")


def _is_strangers(used: RequestSettings) -> bool:
    """Tell whether the key is meant for another host, as releases that send it anywhere allow."""
    source = used.key.source
    if used.provider != "custom" or source.kind not in (ENV, PROCESS) or source.via:
        return False
    owner = _GENERAL.get(source.name)
    return owner is not None and not urls.belongs(used.base_url, owner)


def _block(inputs: SettingInputs, url: str) -> Mapping[Any, Any]:
    """Return the entry of config.yaml with this address."""
    wanted = url.rstrip("/").lower()
    older = inputs.config.get("custom_providers")
    blocks = [*(older if isinstance(older, list) else ())]
    providers = inputs.config.get("providers")
    blocks += providers.values() if isinstance(providers, dict) else ()
    for block in blocks:
        said = [block.get(k) for k in ("base_url", "url", "api")] if isinstance(block, dict) else []
        if any(isinstance(one, str) and one.rstrip("/").lower() == wanted for one in said):
            found: Mapping[Any, Any] = block
            return found
    return EMPTY
