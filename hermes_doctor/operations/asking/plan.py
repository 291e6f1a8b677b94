"""Decide who is asked: the running gateway if its API server can be used, else the providers.

What a model or a provider said is shortened and redacted before it is shown or stored.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from hermes_doctor.backup.records.last_ask import GATEWAY, PROVIDER
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import shorten, text
from hermes_doctor.core.model import CouldNotLook, Gateway, Trouble
from hermes_doctor.core.redaction import describe_hidden, redact_log_text, redact_words
from hermes_doctor.core.setting_lines import is_secret_name
from hermes_doctor.diagnosis.probes import port_test
from hermes_doctor.diagnosis.probes.network import request
from hermes_doctor.diagnosis.probes.network.provider_trial import name_of
from hermes_doctor.diagnosis.probes.network.request import Request
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.processes import sockets
from hermes_doctor.hermes.settings import platform_setup
from hermes_doctor.hermes.settings.credential_pool import suspected_secrets
from hermes_doctor.hermes.settings.inputs import Settings
from hermes_doctor.hermes.settings.resolved import Resolved, Route

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
    words = words.strip()
    if not words or len(words) > LONGEST:
        raise Trouble(
            "The question must have 1 to {most:,} characters. Nothing was sent.", most=LONGEST
        )
    try:
        resolved = probes.settings.resolved()
        settings = probes.settings.effective()
    except CouldNotLook as doubt:
        raise Trouble("Could not ask: {reason}. Nothing was sent.", reason=doubt) from None
    door = find_door(probes, resolved)
    if isinstance(door, Door):
        body = {"model": "hermes-agent", "messages": [{"role": "user", "content": words}]}
        headers = {"Authorization": f"Bearer {door.key}"} if door.key else {}
        url = f"http://{door.place}/v1/chat/completions"
        request = Request(resolved.used or resolved.main, url, headers, json.dumps(body).encode())
        nowhere = Settings({}, frozenset(), {}, ())  # no proxy: it is on this machine
        secrets = secrets_of(resolved, door.key)
        return AskPlan(GATEWAY, words, [request], nowhere, secrets, *_shown(request), door)
    return _direct(probes, resolved, settings, words, door)


def _direct(
    probes: Probes, resolved: Resolved, settings: Settings, words: str, why: str
) -> AskPlan:
    question = request.Question(words, TOKENS, _versions(probes))
    requests = list(request.requests(resolved, question))
    if not requests:
        reason = _why_nobody(resolved)
        raise Trouble(
            "Could not ask: {reason}, and {gateway}. Nothing was sent. See: hermes-doctor config",
            reason=reason,
            gateway=why,
        )
    values = [value for request in requests for value in request.secrets]
    bare = [_SCHEME.sub("", value.strip()) for value in values]
    secrets = secrets_of(resolved, *[one for one in bare if "://" not in one and len(one) > 7])
    first = _shown(requests[0])
    names = tuple(dict.fromkeys(_shown(request)[0] for request in requests[1:]))
    return AskPlan(PROVIDER, words, requests, settings, secrets, *first, None, why, names)


def _shown(request: Request) -> tuple[str, str]:
    """Return the names of a request's provider and model, for the user."""
    return redact_words(name_of(request.route)), redact_words(request.route.model.value or "")


def _versions(probes: Probes) -> Mapping[str, str]:
    """Return the versions of the installed packages that send requests in Hermes."""
    try:
        packages = probes.hermes.packages()
    except CouldNotLook:
        return {}
    versions = {}
    for name in packages.names if packages else ():
        package, _, rest = name.partition("-")
        if package in _LIBRARIES and rest.endswith(".dist-info"):
            versions[package] = rest.removesuffix(".dist-info")
    return versions


def _why_nobody(resolved: Resolved) -> str:
    """Why no provider can be asked, in the order in which the operator would repair it."""
    main = resolved.main
    name = redact_words(name_of(main))
    if resolved.world.document.fault:
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


YOUNG = 60.0
"""Seconds after its start in which a gateway may not listen yet."""
PATIENCE, STEP = 15.0, 0.2
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class Door(NamedTuple):
    """The API server of a running gateway. `key` is a secret: never show it."""

    pid: int
    host: str
    port: int
    key: str

    def __repr__(self) -> str:
        return f"Door({self.place})"

    @property
    def place(self) -> str:
        """The address for display and for a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def find_door(probes: Probes, resolved: Resolved) -> Door | str:
    """Return the API server of the gateway, or why the gateway cannot be asked."""
    gateway = _gateway(probes)
    if isinstance(gateway, str):
        return gateway
    server = platform_setup.find_api_server(resolved)
    if server is None:
        return "the API server of the gateway is off"
    if server.refused:
        return text("the API server did not start: its key is {fault}", fault=server.fault)
    key = platform_setup.api_server_key(resolved.world)
    if not (key.isascii() and key.isprintable()):
        return "the key of the API server contains unusual characters"
    known = platform_setup.listening_ports(resolved.world)
    address = _listening(
        gateway, next(port.port for port in known if port.platform == platform_setup.API_SERVER)
    )
    if isinstance(address, str):
        return address
    return Door(gateway.pid, *address, str(key))


def _gateway(probes: Probes) -> Gateway | str:
    try:
        if probes.gateway.served_by():
            return "the gateway of the root home serves this profile"
        runtime, gateways = probes.gateway.runtime(), probes.gateway.running()
    except CouldNotLook as doubt:
        return text("could not look for the gateway: {reason}", reason=doubt)
    if not gateways:
        return runtime.unseen or "no gateway is running"
    return next(
        (gateway for gateway in gateways if gateway.pid == runtime.lock_holder), gateways[0]
    )


def _listening(gateway: Gateway, port: int) -> tuple[str, int] | str:
    """Return the address on which this very process listens; wait for it after a start."""
    if not port_test.reachable(gateway.pid):
        return "the gateway has its own network, as in a container"
    age = (datetime.now(UTC) - gateway.running_since).total_seconds()
    end = time.monotonic() + (PATIENCE if age < YOUNG else 0.0)
    while True:
        for listener in sockets.listeners(gateway.pid):
            if listener.local[1] == port:
                return _ANYWHERE.get(listener.local[0], listener.local[0]), port
        if time.monotonic() >= end:
            return text("the gateway does not listen on port {port} of its API server", port=port)
        time.sleep(STEP)


LONG = 160
"""Characters: about two lines of a terminal."""
MOST = 20_000
"""Characters that are looked at, so that a huge answer takes no time."""
_STYLES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
_SHORTEST = 6


def first_words(answer: str, secrets: Iterable[str]) -> str:
    """Return the first words without secrets, line breaks and control characters."""
    plain = " ".join(_STYLES.sub("", answer[:MOST]).split())
    known = sorted({secret for secret in secrets if secret}, key=len, reverse=True)
    parts = re.split(f"({'|'.join(map(re.escape, known))})", plain) if known else [plain]
    return shorten("".join(_redacted(part, known) for part in parts), LONG)


def _redacted(part: str, secrets: Container[str]) -> str:
    if part in secrets:
        return describe_hidden(part, kind="key")
    return redact_words(redact_log_text(part))


def secrets_of(resolved: Resolved, *more: str) -> list[str]:
    """Return the values that must not be shown: the keys of the home, and those that are sent."""
    return [secret for secret in {*more, *_variables(resolved)} if len(secret) >= _SHORTEST]


def _variables(resolved: Resolved) -> Iterator[str]:
    for name, value in resolved.world.variables.items():
        if is_secret_name(name):
            yield str(value).strip()
    for _, written in suspected_secrets(resolved.world.raw):
        yield written.strip()
