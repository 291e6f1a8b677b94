"""Test whether a gateway accepts connections.

On this machine connecting is enough: the event loop itself accepts connections, and the kernel
shows when it has. No data is sent, so nothing is logged. A remote gateway is asked for /health.
"""

from __future__ import annotations

import io
import os
import time
from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.hermes.processes import sockets
from hermes_doctor.hermes.processes.sockets import Connection

if TYPE_CHECKING:
    pass

NOT_ASKED, ANSWERED, SILENT, REFUSED = "not asked", "answered", "silent", "refused"
ODD = "something else answers there"
BROKEN = "it answers with a server error (5xx)"
_URL = pattern(r"(https?)://(\[[0-9a-fA-F:.]+\]|[^/:@?#\s\[\]]+)(?::(\d{1,5}))?(/[^?#\s]*)?/?")
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
STEP = 0.02
MOST = 65536
"""Bytes that are read of an answer; Hermes sends less than a hundred."""


class HealthResult(NamedTuple):
    """The result of a health test, and how long it took."""

    result: str
    seconds: float = 0.0


class HealthUrl(NamedTuple):
    """An address that a person wrote in a setting."""

    host: str
    port: int
    secure: bool
    path: str

    @property
    def loopback(self) -> bool:
        """Whether the address is on this machine; of all names only localhost certainly is."""
        import ipaddress

        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse(url: str) -> HealthUrl | None:
    """Parse a URL; None if it is invalid or contains a login."""
    match = _URL.fullmatch(url)
    if not match:
        return None
    secure = match[1] == "https"
    port = int(match[3]) if match[3] else (443 if secure else 80)
    path = (match[4] or "").rstrip("/").removesuffix("/detailed").removesuffix("/health")
    return HealthUrl(match[2].strip("[]"), port, secure, path) if 0 < port < 65536 else None


def reachable(pid: int) -> bool:
    """Tell whether the process is in our network namespace, so that its loopback is ours."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net") == os.readlink("/proc/self/ns/net")
    except OSError:
        return False


def test_port(pid: int, listener: Connection, timeout: float) -> HealthResult:
    """Connect to a local process and see in the kernel's table whether it accepts.

    The table counts the connections that are not accepted yet; zero means that ours was.
    """
    import socket

    host, port = listener.local
    host = _ANYWHERE.get(host, host)
    started = time.monotonic()
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as link:
            link.settimeout(timeout)
            link.connect((host, port))
            while (spent := time.monotonic() - started) < timeout:
                listening = sockets.listeners(pid)
                waiting = next((one.unread for one in listening if one.local == listener.local), -1)
                if waiting < 0:
                    return HealthResult(REFUSED, spent)
                if waiting == 0:
                    return HealthResult(ANSWERED, spent)
                time.sleep(STEP)
    except TimeoutError:  # the accept queue is full, so the kernel takes no more
        pass
    except OSError:
        return HealthResult(REFUSED, time.monotonic() - started)
    return HealthResult(SILENT, time.monotonic() - started)


def get_health(url: HealthUrl, timeout: float) -> HealthResult:
    """Send one GET /health, which every release answers without a key."""
    import socket

    started = time.monotonic()
    try:
        with socket.create_connection((url.host, url.port), timeout=timeout) as plain:
            link = _wrapped(plain, url.host) if url.secure else plain
            link.sendall(
                f"GET {url.path}/health HTTP/1.1\r\nHost: {url.host}\r\n"
                "User-Agent: hermes-doctor\r\nConnection: close\r\n\r\n".encode()
            )
            until = started + timeout
            data = b""
            while len(data) < MOST:
                link.settimeout(max(STEP, until - time.monotonic()))
                more = link.recv(MOST)
                if not more:
                    break
                data += more
                if time.monotonic() > until:
                    raise TimeoutError
    except TimeoutError:
        return HealthResult(SILENT, time.monotonic() - started)
    except (OSError, ValueError):
        return HealthResult(REFUSED, time.monotonic() - started)
    return HealthResult(_judged(data) if data else SILENT, time.monotonic() - started)


def _judged(data: bytes) -> str:
    """Tell whether Hermes answered; a proxy in front of a dead gateway answers as well."""
    import json
    from http.client import HTTPException, HTTPResponse

    try:
        answer = HTTPResponse(_Heard(data))  # type: ignore[arg-type]
        answer.begin()
        if answer.status >= 500:
            return BROKEN
        said = json.loads(answer.read(MOST)) if answer.status == 200 else None
    except (HTTPException, OSError, ValueError, RecursionError):
        return ODD
    words = said if isinstance(said, dict) else {}
    mine = words.get("platform") == "hermes-agent" and words.get("status") == "ok"
    return ANSWERED if mine else ODD


class _Heard:
    """Received bytes, in the form that `http.client` reads."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def makefile(self, _mode: str) -> io.BytesIO:
        return io.BytesIO(self.data)


def _wrapped(plain, host: str):  # type: ignore[no-untyped-def]
    """Encrypt the connection without checking the certificate, which is checked elsewhere."""
    import ssl

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(plain, server_hostname=host)
