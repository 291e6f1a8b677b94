"""Asks a gateway's API server whether it lives: one request, a moment's patience, no library."""

from __future__ import annotations

import os
import re
import time
from typing import NamedTuple

NOT_ASKED, ANSWERED, SILENT, REFUSED = "not asked", "answered", "silent", "refused"
ODD = "something else answers there"
_VERSION = re.compile(rb'"version"\s*:\s*"([0-9][\w.+-]{0,31})"')
_URL = re.compile(r"(https?)://(\[[0-9a-fA-F:.]+\]|[^/:@?#\s\[\]]+)(?::(\d{1,5}))?(/[^?#\s]*)?/?")
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
MOST = 8192


class Answer(NamedTuple):
    """What came back."""

    word: str
    seconds: float = 0.0
    version: str | None = None


class Place(NamedTuple):
    """An address that a person wrote."""

    host: str
    port: int
    secure: bool
    path: str

    @property
    def loopback(self) -> bool:
        """Whether asking there stays on this machine."""
        return self.host in _LOOPBACK or self.host.startswith("127.")


def parse(url: str) -> Place | None:
    """An address without name or password in it; with one it is not asked."""
    match = _URL.fullmatch(url)
    if not match:
        return None
    secure = match[1] == "https"
    port = int(match[3]) if match[3] else (443 if secure else 80)
    path = (match[4] or "").rstrip("/").removesuffix("/detailed").removesuffix("/health")
    return Place(match[2].strip("[]"), port, secure, path) if 0 < port < 65536 else None


def reachable(pid: int) -> bool:
    """Whether the process lives in our network, so that its loopback is ours."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net") == os.readlink("/proc/self/ns/net")
    except OSError:
        return False


def ask(local: tuple[str, int], patience: float) -> Answer:
    """Ask a server of this machine that listens there."""
    host, port = local
    return ask_place(Place(_ANYWHERE.get(host, host), port, False, ""), patience)


def ask_place(place: Place, patience: float) -> Answer:
    """One GET /health, which every release answers without a key and without a line in its log."""
    import socket

    started = time.monotonic()
    try:
        with socket.create_connection((place.host, place.port), timeout=patience) as plain:
            link = _wrapped(plain, place.host) if place.secure else plain
            link.sendall(
                f"GET {place.path}/health HTTP/1.1\r\nHost: {place.host}\r\n"
                "User-Agent: hermes-doctor\r\nConnection: close\r\n\r\n".encode()
            )
            data = b""
            while len(data) < MOST and (left := started + patience - time.monotonic()) > 0:
                link.settimeout(left)
                more = link.recv(MOST - len(data))
                data += more
                if not more:
                    break
    except TimeoutError:
        return Answer(SILENT, time.monotonic() - started)
    except (OSError, ValueError):
        return Answer(REFUSED, time.monotonic() - started)
    spent = time.monotonic() - started
    if not data:
        return Answer(SILENT, spent)
    version = _VERSION.search(data)
    ours = data.startswith(b"HTTP/1.")
    return Answer(ANSWERED if ours else ODD, spent, version[1].decode() if version else None)


def _wrapped(plain, host: str):  # type: ignore[no-untyped-def]
    """The same link, encrypted; whether the certificate is good is another question."""
    import ssl

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(plain, server_hostname=host)
