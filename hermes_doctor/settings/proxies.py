"""Determine the proxies that a gateway uses, from its variables."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.settings.variables import Settings

_USUAL = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy")
_FORM = pattern(
    r"(?:(?P<scheme>[a-z0-9+.-]+)://)?(?:(?P<auth>[^@/]*)@)?"
    r"(?P<host>\[[^\]]+\]|[^:/?#]+)(?::(?P<port>\d{1,5}))?(?:[/?#].*)?",
    re.IGNORECASE | re.DOTALL,
)
_PORTS = {"http": 80, "https": 443}


class Proxy(NamedTuple):
    """A proxy. `auth` is a secret: never show it."""

    variable: str
    scheme: str
    host: str
    port: int
    auth: str | None = None

    @property
    def name(self) -> str:
        """The proxy's address for display."""
        return f"{self.scheme}://{self.host}:{self.port}"


def parse(variable: str, value: str) -> Proxy | None:
    """Parse a variable's value; None if it cannot be a proxy."""
    match = _FORM.fullmatch(value.strip())
    if not match:
        return None
    scheme = (match["scheme"] or "http").lower()
    port = int(match["port"]) if match["port"] else _PORTS.get(scheme, 1080)
    if not 0 < port < 65536:
        return None
    return Proxy(variable, scheme, match["host"].strip("[]"), port, match["auth"])


def all_proxies(settings: Settings, own: Iterable[str] = ()) -> list[Proxy]:
    """Return each proxy that is set, a platform's own ones first."""
    found: dict[tuple[str, int], Proxy] = {}
    for variable in (*own, *(name.lower() for name in own), *_USUAL):
        proxy = parse(variable, settings.value(variable)) if settings.value(variable) else None
        if proxy:
            found.setdefault((proxy.host, proxy.port), proxy)
    return list(found.values())


def proxy_for(settings: Settings, host: str, own: Iterable[str] = ()) -> Proxy | None:
    """Return the proxy for requests to this host; None if they go directly."""
    if any(_excepted(host, word) for word in _exceptions(settings)):
        return None
    return next(iter(all_proxies(settings, own)), None)


def _exceptions(settings: Settings) -> list[str]:
    text = settings.value("NO_PROXY") or settings.value("no_proxy")
    return [word.strip().lower() for word in text.split(",") if word.strip()]


def _excepted(host: str, word: str) -> bool:
    """Tell whether an entry of NO_PROXY (`*`, name, `.domain`, address, range) covers the host."""
    host = host.lower()
    if word == "*" or host == word:
        return True
    if "/" in word:
        import ipaddress

        try:
            return ipaddress.ip_address(host) in ipaddress.ip_network(word, strict=False)
        except ValueError:
            return False
    return host.endswith("." + word.removeprefix("*").lstrip("."))
