"""Send one small request to each provider that a message may use; only with `--network`.

It uses the gateway's proxy and certificates, and goes only to the resolved address: redirects are
not followed. Time and bytes are limited.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hermes_doctor import __version__
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.diagnosis.probes.network import reach, verdict
from hermes_doctor.diagnosis.probes.network.reach import NeededHost, StageFailed, Trust
from hermes_doctor.diagnosis.probes.network.verdict import ProviderVerdict
from hermes_doctor.hermes.settings.inputs import Settings
from hermes_doctor.hermes.settings.urls import Endpoint, Proxy, proxy_for

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.probes.network.request import Request
    from hermes_doctor.hermes.settings.resolved import Resolved, Route

PATIENCE = 15.0
"""Seconds for each provider in total; all are asked at the same time."""
LARGEST = 64 * 1024
"""Bytes that are read of an answer."""
LATE = "no answer in time"
PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")
"""The order in which Hermes looks for a proxy to a provider; the lower-case names follow."""


class Trial(NamedTuple):
    """How one provider answered, without secrets."""

    route: Route
    proxy: Proxy | None
    failed: str | None
    """The stage that failed before there was an answer: as in `Reached`, or `answer`."""
    why: str
    verdict: ProviderVerdict | None
    seconds: float

    @property
    def name(self) -> str:
        """The provider's name, for the user."""
        return name_of(self.route)

    @property
    def is_fine(self) -> bool:
        """Whether the provider would serve a message."""
        return self.verdict is not None and self.verdict.kind == verdict.OK


def ask_all(requests: Iterable[Request], settings: Settings) -> list[Trial]:
    """Ask all providers at once; abandon those that do not answer in time."""
    wanted = list(requests)
    found: dict[int, Trial] = {}
    links: dict[int, socket.socket] = {}

    def one(number: int, request: Request) -> None:
        found[number] = ask(request, settings, lambda link: links.update({number: link}))

    threads = [
        threading.Thread(target=one, args=(n, request), name=f"trial-{n}", daemon=True)
        for n, request in enumerate(wanted)
    ]
    for thread in threads:
        thread.start()
    end = time.monotonic() + PATIENCE
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    in_time = dict(found)  # shutting a link below looks like a failure to its thread
    for number in links.keys() - in_time.keys():
        with contextlib.suppress(OSError):
            links[number].shutdown(socket.SHUT_RDWR)
    return [
        in_time.get(n) or Trial(request.route, None, "answer", LATE, None, PATIENCE)
        for n, request in enumerate(wanted)
    ]


def targets(resolved: Resolved, settings: Settings) -> list[NeededHost]:
    """Return the hosts of all providers that a message may use, also those not asked."""
    from hermes_doctor.diagnosis.probes.network import request

    asked = {one.route.path: one for one in request.requests(resolved)}
    needed_hosts = []
    for route in (resolved.main, *resolved.fallback):
        failure = asked.get(route.path)
        url = failure.url if failure else str(route.base_url.value) if route.base_url else ""
        if url.startswith(("http://", "https://")):
            with contextlib.suppress(ValueError):
                needed_hosts.append(
                    _target(route, url, settings, failure.trust if failure else Trust())
                )
    return needed_hosts


def _target(route: Route, url: str, settings: Settings, trust: Trust) -> NeededHost:
    """Return the host of a URL and how Hermes connects to it."""
    parts = urlsplit(url)
    encrypted = parts.scheme == "https"
    end = Endpoint(parts.hostname or "", parts.port or (443 if encrypted else 80))
    return NeededHost(name_of(route), end, proxy_for(settings, end.host, PROXIES), encrypted, trust)


def name_of(route: Route) -> str:
    """Return the name of a route's provider, for the user."""
    asked = route.requested.value
    known = route.provider.value if route.provider else None
    return (asked if asked and asked != "auto" else known) or route.path


def ask(
    request: Request,
    settings: Settings,
    opened: Callable[[socket.socket], object] = id,
) -> Trial:
    """Send one request and judge the answer."""
    began = time.monotonic()
    reply = send(request, settings, opened)
    provider_verdict = None
    if reply.failed is None:
        provider_verdict = verdict.judge(reply.status, reply.body, request.place)
        if any(provider_verdict.message in value.lower() for value in request.headers.values()):
            provider_verdict = provider_verdict._replace(message="")  # it may be the key
    spent = time.monotonic() - began
    return Trial(request.route, reply.proxy, reply.failed, reply.why, provider_verdict, spent)


class Reply(NamedTuple):
    """What came back, with the provider's own words: the body may contain secrets."""

    proxy: Proxy | None = None
    failed: str | None = None
    why: str = ""
    status: int = 0
    body: bytes = b""


def send(
    request: Request,
    settings: Settings,
    opened: Callable[[socket.socket], object] = id,
    patience: float = PATIENCE,
    most: int = LARGEST,
) -> Reply:
    """Send one request, and once more if the model wants another name of the token limit.

    At most `most` bytes of the answer are read.
    """
    began = time.monotonic()
    proxy = None
    try:
        wanted = _target(request.route, request.url, settings, request.trust)
        proxy = wanted.proxy
        for one in (request, request.otherwise()):
            with reach.open_connection(wanted, settings, began) as link:
                opened(link)
                link.settimeout(max(1.0, patience - (time.monotonic() - began)))
                status, body = _exchange(link, one, wanted, most)
            if not verdict.wants_other_limit(status, body):
                break
    except StageFailed as failure:
        return Reply(proxy, failure.stage, failure.why)
    except ValueError:  # an impossible address
        return Reply(proxy, "answer", "the address is malformed")
    except Exception as error:  # noqa: BLE001 (whatever a server can make of HTTP)
        return Reply(proxy, "answer", _words(error))
    return Reply(proxy, None, "", status, body)


def _exchange(
    link: socket.socket, request: Request, wanted: NeededHost, most: int
) -> tuple[int, bytes]:
    """Return the status and the start of the body, using an open connection."""
    from http.client import HTTPConnection

    parts = urlsplit(request.url)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    headers = {
        "Host": parts.netloc.rpartition("@")[2],
        "User-Agent": f"hermes-doctor/{__version__}",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Connection": "close",
        **request.headers,
        "Content-Type": "application/json",
    }
    if reach.is_forwarded(wanted):
        path = request.url
        headers |= reach.proxy_login(wanted.proxy)
    connection = HTTPConnection(wanted.endpoint.host, wanted.endpoint.port)
    connection.sock = link
    connection.request("POST", path, request.body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read(most)


def _words(error: Exception) -> str:
    """Describe an error; never in its own words, because HTTP errors repeat data."""
    if isinstance(error, TimeoutError):
        return LATE
    if isinstance(error, OSError):
        return reach.error_words(error)
    return "the answer is not HTTP"
