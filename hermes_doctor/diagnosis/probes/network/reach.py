"""Test whether the hosts that a gateway needs can be reached: name, connection, certificate.

Runs only if the operator asks for it (`--network`), connects as the gateway would, sends no data
and logs in nowhere.
"""

from __future__ import annotations

import base64
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Mapping, Sequence

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.system import limits
from hermes_doctor.hermes.settings.inputs import Settings
from hermes_doctor.hermes.settings.platforms import Platform
from hermes_doctor.hermes.settings.urls import Endpoint, Proxy, proxy_for

PATIENCE = 4.0
"""Seconds for each host, all stages together."""
MOST = 40
"""The maximum number of hosts that are tested."""
_PLAIN = (80, 8080, 8123)
"""Ports on which no TLS is expected."""
_SOCKS = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "took too long",
}


class Trust(NamedTuple):
    """How a host's certificate is verified."""

    verified: bool = True
    bundle: str | None = None
    """A CA bundle for this host only."""


class NeededHost(NamedTuple):
    """A host that is needed, and how to connect to it."""

    what: str
    """The platform or provider that needs it, for the user."""
    endpoint: Endpoint
    proxy: Proxy | None
    encrypted: bool
    trust: Trust = Trust()


class HostResult(NamedTuple):
    """How far the test of one host came."""

    target: NeededHost
    failed: str | None
    """The stage that failed: `name`, `connection`, `certificate`, `proxy`; None if none did."""
    why: str
    addresses: frozenset[str]
    """The addresses that the name resolves to."""
    seconds: float


class StageFailed(Exception):
    """The stage that failed, and why."""

    def __init__(self, stage: str, why: str) -> None:
        super().__init__(stage, why)
        self.stage, self.why = stage, why


def targets(
    settings: Settings,
    platforms: Sequence[Platform],
    providers: Mapping[str, Endpoint],
    exact: Iterable[NeededHost] = (),
) -> list[NeededHost]:
    """Return every host that a gateway with these settings needs; `exact` are known exactly."""
    found: dict[Endpoint, NeededHost] = {}
    for platform in platforms:
        for end in platform.endpoints:
            proxy = proxy_for(settings, end.host, platform.proxy_variables)
            found.setdefault(end, _target(platform.label, end, proxy))
    for target in exact:
        found.setdefault(target.endpoint, target)
    for name, end in providers.items():
        found.setdefault(end, _target(name, end, proxy_for(settings, end.host)))
    return list(found.values())[:MOST]


def _target(what: str, end: Endpoint, proxy: Proxy | None) -> NeededHost:
    local = end.host in ("localhost", "127.0.0.1", "::1")
    return NeededHost(what, end, None if local else proxy, not local and end.port not in _PLAIN)


def test_hosts(hosts: Iterable[NeededHost], settings: Settings) -> list[HostResult]:
    """Test all hosts at once; abandon those that do not answer in time."""
    wanted = list(hosts)
    found: dict[int, HostResult] = {}

    def one(number: int, target: NeededHost) -> None:
        found[number] = test_host(target, settings)

    threads = [
        threading.Thread(target=one, args=(n, target), name=f"reach-{n}", daemon=True)
        for n, target in enumerate(wanted)
    ]
    for thread in threads:
        thread.start()
    end = time.monotonic() + limits.stretch(PATIENCE + 1)
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    late = "no answer from the name server"
    return [
        found.get(n) or HostResult(target, "name", late, frozenset(), PATIENCE)
        for n, target in enumerate(wanted)
    ]


def test_host(target: NeededHost, settings: Settings) -> HostResult:
    """Test name, connection and certificate of one host, as the gateway would connect."""
    began = time.monotonic()
    addresses: frozenset[str] = frozenset()
    failed, why = None, ""
    try:
        if target.proxy is None:
            addresses = _resolve(target.endpoint, "name")
        _secured(_connected(target, addresses, began), target, settings).close()
    except StageFailed as failure:
        failed, why = failure.stage, failure.why
    return HostResult(target, failed, why, addresses, time.monotonic() - began)


def open_connection(target: NeededHost, settings: Settings, started_at: float) -> socket.socket:
    """Open a connection to one host, encrypted if the target requires it."""
    addresses = _resolve(target.endpoint, "name") if target.proxy is None else frozenset()
    link = _connected(target, addresses, started_at, tunnelled=not is_forwarded(target))
    return _secured(link, target, settings)


def _secured(link: socket.socket, target: NeededHost, settings: Settings) -> socket.socket:
    if not target.encrypted:
        return link
    try:
        return _encrypted(link, target, settings)
    except StageFailed:
        link.close()
        raise


def _resolve(end: Endpoint, stage: str) -> frozenset[str]:
    try:
        found = socket.getaddrinfo(end.host, end.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise StageFailed(stage, error_words(error)) from error
    return frozenset(str(one[4][0]) for one in found)


def _connected(
    target: NeededHost, addresses: frozenset[str], began: float, *, tunnelled: bool = True
) -> socket.socket:
    """Connect to the host, through the proxy if there is one."""
    if target.proxy is None:
        ordered = sorted(addresses, key=lambda ip: ":" in ip)
        return _dial([(ip, target.endpoint.port) for ip in ordered], began, "connection")
    proxy = target.proxy
    there = _resolve(Endpoint(proxy.host, proxy.port), "proxy")
    link = _dial([(ip, proxy.port) for ip in sorted(there)], began, "proxy")
    try:
        if proxy.scheme.startswith("socks"):
            _socks(link, proxy, target.endpoint)
        elif tunnelled:
            _connect(link, proxy, target.endpoint)
    except OSError as error:
        link.close()
        raise StageFailed("proxy", f"the proxy gives no answer: {error_words(error)}") from error
    except StageFailed:
        link.close()
        raise
    return link


def is_forwarded(target: NeededHost) -> bool:
    """Tell whether a proxy gets the unencrypted request itself instead of a CONNECT."""
    return target.proxy is not None and target.proxy.scheme == "http" and not target.encrypted


def proxy_login(proxy: Proxy | None) -> dict[str, str]:
    """Return the login header for a proxy. Contains a secret."""
    if proxy is None or not proxy.auth:
        return {}
    return {"Proxy-Authorization": f"Basic {base64.b64encode(_secret(proxy)).decode()}"}


def _dial(places: Sequence[tuple[str, int]], began: float, stage: str) -> socket.socket:
    why = "the name has no address"
    for n, place in enumerate(places):
        left = limits.stretch(PATIENCE) - (time.monotonic() - began)
        if left <= 0:
            break
        try:
            return socket.create_connection(place, timeout=left / (len(places) - n))
        except OSError as error:
            why = error_words(error)
    raise StageFailed(stage, why)


def _connect(link: socket.socket, proxy: Proxy, end: Endpoint) -> None:
    """Ask an HTTP proxy for a tunnel."""
    if proxy.scheme not in ("http", "https"):
        raise StageFailed("proxy", f"Hermes does not know proxies with {proxy.scheme}://")
    head = f"CONNECT {end.host}:{end.port} HTTP/1.1\r\nHost: {end.host}:{end.port}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in proxy_login(proxy).items())
    link.sendall(head.encode() + b"\r\n")
    answer = b""
    while b"\r\n\r\n" not in answer and len(answer) < 65536:
        part = link.recv(4096)
        if not part:
            break
        answer += part
    status = answer.split(b" ", 2)[1:2]
    if status != [b"200"]:
        number = status[0].decode("ascii", "replace") if status else "nothing"
        said = number if number.isdigit() else "no HTTP"
        raise StageFailed("proxy", f"the proxy answers {said} to CONNECT")


def _socks(link: socket.socket, proxy: Proxy, end: Endpoint) -> None:
    """Ask a SOCKS5 proxy for a connection; the proxy resolves the name."""
    if proxy.scheme not in ("socks5", "socks5h"):
        raise StageFailed("proxy", f"Hermes does not know proxies with {proxy.scheme}://")
    link.sendall(b"\x05\x02\x00\x02" if proxy.auth else b"\x05\x01\x00")
    method = _exactly(link, 2)
    if method == b"\x05\x02" and proxy.auth:
        user, _, word = _secret(proxy).partition(b":")
        link.sendall(b"\x01" + bytes([len(user)]) + user + bytes([len(word)]) + word)
        if _exactly(link, 2)[1:] != b"\x00":
            raise StageFailed("proxy", "the proxy refuses the name or the password")
    elif method != b"\x05\x00":
        raise StageFailed("proxy", "the proxy asks for a login that is not set")
    name = end.host.encode("idna")
    link.sendall(b"\x05\x01\x00\x03" + bytes([len(name)]) + name + end.port.to_bytes(2, "big"))
    head = _exactly(link, 4)
    if head[1]:
        raise StageFailed("proxy", f"the proxy answers: {_SOCKS.get(head[1], 'it cannot')}")
    length = {1: 4, 4: 16}.get(head[3]) or _exactly(link, 1)[0]
    _exactly(link, length + 2)


def _exactly(link: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = link.recv(count - len(data))
        if not part:
            raise StageFailed("proxy", "the proxy closed the connection")
        data += part
    return data


def _secret(proxy: Proxy) -> bytes:
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(proxy.auth or "")[:500]


def _encrypted(link: socket.socket, target: NeededHost, settings: Settings) -> ssl.SSLSocket:
    """Start TLS as the gateway would, trusting the same certificates."""
    variables = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
    named = next((name for name in variables if settings.value(name)), None)
    bundle = target.trust.bundle or (settings.value(named) if named else None)
    try:
        context = ssl.create_default_context(cafile=bundle)
    except (OSError, ssl.SSLError) as error:
        which = "ssl_ca_cert" if target.trust.bundle else named
        raise StageFailed("certificate", f"{which} cannot be used: {error_words(error)}") from error
    if not target.trust.verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    try:
        return context.wrap_socket(link, server_hostname=target.endpoint.host)
    except ssl.SSLCertVerificationError as error:
        raise StageFailed("certificate", error.verify_message.lower().rstrip(".")) from error
    except (OSError, ValueError) as error:
        raise StageFailed("certificate", error_words(error)) from error


def error_words(error: Exception) -> str:
    """Describe a network error in a few words."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLError):
        return (error.reason or "no TLS").lower().replace("_", " ")
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error).lower() or type(error).__name__
