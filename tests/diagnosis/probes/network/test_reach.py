"""Reaching hosts: straight, through proxies, and every way in which it fails."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_doctor.diagnosis.probes.network import reach
from hermes_doctor.diagnosis.probes.network.reach import NeededHost
from hermes_doctor.hermes.settings.inputs import Settings
from hermes_doctor.hermes.settings.urls import Endpoint, Proxy, parse_proxy
from tests.helpers.certificates import certificate as certificate

NOTHING = Settings({}, frozenset(), {}, ())
Serve = Callable[[socket.socket], None]


@contextmanager
def server(serve: Serve) -> Iterator[int]:
    """A port on this machine where each caller is served in a thread of its own."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def accept() -> None:
            while True:
                try:
                    caller, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=_serve, args=(serve, caller), daemon=True).start()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)  # wakes the thread, which else keeps the port open
        accepting.join(5)


def _serve(serve: Serve, caller: socket.socket) -> None:
    with caller:
        caller.settimeout(5)
        try:
            serve(caller)
        except OSError:
            return


def look(
    port: int, *, host: str = "127.0.0.1", tls: bool = False, proxy: str | None = None,
    settings: Settings = NOTHING,
) -> tuple[str | None, str]:  # fmt: skip
    """Which stage fails, and why."""
    through = parse_proxy("HTTPS_PROXY", proxy) if proxy else None
    found = reach.test_host(NeededHost("it", Endpoint(host, port), through, tls), settings)
    assert found.seconds < reach.PATIENCE + 1
    return found.failed, found.why


def encrypted(certificate: Path) -> Serve:
    """Says hello with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def serve(caller: socket.socket) -> None:
        try:
            with context.wrap_socket(caller, server_side=True) as talk:
                talk.recv(1)
        except OSError:
            return

    return serve


def test_straight() -> None:
    """Connected, or refused."""
    with server(lambda caller: None) as port:
        assert look(port) == (None, "")
    assert look(port) == ("connection", "connection refused")


def test_unknown_name() -> None:
    """A name that cannot exist."""
    stage, why = look(443, host="name..invalid")

    assert stage == "name"
    assert why


def test_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that lets callers wait is given up."""
    monkeypatch.setattr(reach, "PATIENCE", 0.3)

    def never(place: object, timeout: float) -> socket.socket:
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", never)
    assert look(9) == ("connection", "no answer in time")


def test_certificates(certificate: Path) -> None:
    """The certificate's problem is named; with the right bundle there is none."""
    trusting = Settings({"SSL_CERT_FILE": str(certificate)}, frozenset(), {}, ())
    missing = Settings({"SSL_CERT_FILE": "/nowhere.pem"}, frozenset(), {}, ())
    with server(encrypted(certificate)) as port:
        assert look(port, host="localhost", tls=True) == (
            "certificate",
            "self-signed certificate",
        )
        assert look(port, host="localhost", tls=True, settings=trusting) == (None, "")
        stage, why = look(port, tls=True, settings=trusting)
        assert (stage, "mismatch" in why) == ("certificate", True)
        stage, why = look(port, host="localhost", tls=True, settings=missing)
        assert (stage, "SSL_CERT_FILE" in why) == ("certificate", True)
    with server(lambda caller: caller.sendall(b"HTTP/1.1 400\r\n\r\n")) as port:
        assert look(port, host="localhost", tls=True)[0] == "certificate"


def tunnel(answer: bytes, heard: list[bytes]) -> Serve:
    """An HTTP proxy with one answer."""

    def serve(caller: socket.socket) -> None:
        heard.append(caller.recv(4096))
        caller.sendall(answer)

    return serve


def test_http_proxy() -> None:
    """CONNECT with the login, and what a refusal says; the password goes to the proxy only."""
    heard: list[bytes] = []
    with server(tunnel(b"HTTP/1.1 200 OK\r\n\r\n", heard)) as port:
        assert look(5, host="h.example", proxy=f"http://me:s3cr3t@127.0.0.1:{port}") == (None, "")
    assert heard[0].startswith(b"CONNECT h.example:5 HTTP/1.1\r\n")
    assert base64.b64encode(b"me:s3cr3t") in heard[0]
    for answer, why in (
        (b"HTTP/1.1 407 No\r\n\r\n", "the proxy answers 407 to CONNECT"),
        (b"\x00\x01garbage", "the proxy answers no HTTP to CONNECT"),
        (b"", "the proxy answers no HTTP to CONNECT"),
    ):
        with server(tunnel(answer, heard)) as port:
            assert look(5, proxy=f"http://127.0.0.1:{port}") == ("proxy", why)
    assert look(5, proxy=f"http://127.0.0.1:{port}") == ("proxy", "connection refused")


def socks(*answers: bytes, heard: list[bytes]) -> Serve:
    """A SOCKS5 proxy with some answers."""

    def serve(caller: socket.socket) -> None:
        for answer in answers:
            heard.append(caller.recv(4096))
            caller.sendall(answer)

    return serve


DONE = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"


@pytest.mark.parametrize(
    ("login", "answers", "says"),
    [
        ("", [b"\x05\x00", DONE], None),
        ("u:p@", [b"\x05\x02", b"\x01\x00", DONE], None),
        ("u:p@", [b"\x05\x02", b"\x01\x01"], "refuses the name or the password"),
        ("", [b"\x05\xff"], "asks for a login that is not set"),
        ("", [b"\x05\x00", b"\x05\x05\x00\x01"], "answers: connection refused"),
        ("", [b"\x05"], "closed the connection"),
    ],
)
def test_socks_proxy(login: str, answers: list[bytes], says: str | None) -> None:
    """The proxy looks the name up; its refusals are named."""
    heard: list[bytes] = []
    with server(socks(*answers, heard=heard)) as port:
        found = look(443, host="h.example", proxy=f"socks5://{login}127.0.0.1:{port}")

    assert found == (("proxy", f"the proxy {says}") if says else (None, ""))
    if says is None:
        assert heard[-1] == b"\x05\x01\x00\x03\x09h.example\x01\xbb"


def test_odd_proxies() -> None:
    """A kind that Hermes cannot use is named."""
    with server(lambda caller: None) as port:
        for scheme in ("socks", "ftp"):
            stage, why = look(443, proxy=f"{scheme}://127.0.0.1:{port}")
            assert (stage, scheme in why) == ("proxy", True)


def test_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """All at once, in order, and one that hangs in the name server is given up alone."""
    monkeypatch.setattr(reach, "PATIENCE", 0.2)
    hang = threading.Event()
    resolve = socket.getaddrinfo

    def slow(host: str, *args: object, **options: object) -> object:
        if host == "hangs":
            hang.wait(10)
        return resolve(host, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    with server(lambda caller: None) as port:
        wanted = [
            NeededHost("a", Endpoint("hangs", port), None, False),
            NeededHost("b", Endpoint("127.0.0.1", port), None, False),
        ]
        found = reach.test_hosts(wanted, NOTHING)
    hang.set()

    assert [one.failed for one in found] == ["name", None]
    assert found[1].addresses == {"127.0.0.1"}


def test_loopback_needs_no_proxy() -> None:
    """What is on this machine is called straight, and without encryption."""
    found = reach._target("it", Endpoint("localhost", 443), Proxy("X", "http", "h", 1))

    assert (found.proxy, found.encrypted) == (None, False)
