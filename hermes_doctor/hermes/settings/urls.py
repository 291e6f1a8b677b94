"""Read addresses of providers, hosts and proxies as Hermes does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlparse

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.hermes.knowledge.releases import Release, load_knowledge
from hermes_doctor.hermes.settings.inputs import Settings, section

CHAT, RESPONSES, MESSAGES = "chat_completions", "codex_responses", "anthropic_messages"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})
_NEARBY = (".local", ".lan", ".internal", ".home", ".localhost", ".home.arpa", ".ts.net")
_ASKED_ELSEWHERE = ("OPENAI", "OPENROUTER", "OLLAMA")


def host(url: str) -> str:
    """Return the host of an address with or without a scheme; empty if there is none."""
    raw = url.strip()
    try:
        return (urlparse(raw if "://" in raw else f"//{raw}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def port(url: str) -> int | None:
    """Return the port in an address."""
    try:
        return urlparse(url.strip()).port
    except ValueError:
        return None


def path(url: str) -> str:
    """Return the path after the host."""
    try:
        return urlparse(url.strip()).path
    except ValueError:
        return ""


def fault(url: str) -> str | None:
    """Return why an address with a scheme is invalid; None if it is valid."""
    try:
        parts = urlparse(url.strip())
        named, _ = parts.hostname, parts.port
    except ValueError:
        odd = any(char in url for char in "[]")
        return "invalid brackets" if odd else "invalid host or port"
    return None if named else "no host"


def belongs(url: str, domain: str) -> bool:
    """Tell whether the host is this domain or a subdomain."""
    name = host(url)
    return name == domain or name.endswith(f".{domain}")


def is_loopback(url: str) -> bool:
    """Tell whether the address is on this machine."""
    return host(url) in _LOOPBACK


def is_public(url: str) -> bool:
    """Tell whether the address is on the internet, not on this machine or its network."""
    name = host(url)
    if "." not in name or name in _LOOPBACK or name.endswith(_NEARBY):
        return False
    parts = name.split(".")
    if not all(part.isdecimal() for part in parts):
        return ":" not in name
    first, second = (int(part[:4] or 0) for part in parts[:2])
    nearby = first in (0, 10, 127) or (first, second) in ((192, 168), (169, 254))
    return not (nearby or (first == 172 and 16 <= second <= 31) or (first == 100 and second >= 64))


def mode(url: str, release: Release) -> str | None:
    """Return the protocol that an address implies; None if it implies none."""
    name = host(url)
    if name in ("api.x.ai", "api.openai.com"):
        return RESPONSES
    if name == "api.anthropic.com" and release.since(0, 18):
        return MESSAGES
    bare = url.strip().lower().rstrip("/")
    ends = ("/anthropic", "/anthropic/v1") if release.since(0, 17) else ("/anthropic",)
    end = path(bare).rstrip("/") if release.since(0, 17) else bare
    if end.endswith(ends) or (name == "api.kimi.com" and "/coding" in bare):
        return MESSAGES
    return None


def vendor_variable(url: str) -> str | None:
    """Return the variable that Hermes derives from a host: GROQ_API_KEY from api.groq.com."""
    name = host(url)
    labels = [label for label in name.split(".") if label]
    if not labels or ":" in name or any(char.isdigit() for char in name.split(".")[-1]):
        return None
    while labels and labels[0] in ("api", "www"):
        labels.pop(0)
    if len(labels) < 2:
        return None
    word = "".join(char if char.isalnum() else "_" for char in labels[-2]).upper()
    if not word[:1].isalpha() or word in _ASKED_ELSEWHERE:
        return None
    return f"{word}_API_KEY"


def may_be_anthropic(url: str, release: Release) -> bool:
    """Tell whether an address may speak Anthropic's protocol; older releases accept any."""
    if not release.since(0, 18):
        return bool(url)
    name = host(url)
    official = name == "api.anthropic.com" or name.endswith((".anthropic.com", ".claude.com"))
    return bool(name) and (
        official or name.endswith(".azure.com") or mode(url, release) == MESSAGES
    )


_PROXY_VARIABLES = (
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "HTTP_PROXY",
    "http_proxy",
)
_PROXY = pattern(
    r"(?:(?P<scheme>[a-z0-9+.-]+)://)?(?:(?P<auth>[^@/]*)@)?"
    r"(?P<host>\[[^\]]+\]|[^:/?#]+)(?::(?P<port>\d{1,5}))?(?:[/?#].*)?",
    re.IGNORECASE | re.DOTALL,
)
_PROXY_PORTS = {"http": 80, "https": 443}
_SCHEMES = {"http": 80, "ws": 80, "https": 443, "wss": 443}


class Endpoint(NamedTuple):
    """A host and a port."""

    host: str
    port: int

    @property
    def name(self) -> str:
        """The address as people write it, without the usual port."""
        return self.host if self.port == 443 else f"{self.host}:{self.port}"


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


def parse_proxy(variable: str, value: str) -> Proxy | None:
    """Parse a variable's value; None if it cannot be a proxy."""
    match = _PROXY.fullmatch(value.strip())
    if not match:
        return None
    scheme = (match["scheme"] or "http").lower()
    port = int(match["port"]) if match["port"] else _PROXY_PORTS.get(scheme, 1080)
    if not 0 < port < 65536:
        return None
    return Proxy(variable, scheme, match["host"].strip("[]"), port, match["auth"])


def all_proxies(settings: Settings, own: Iterable[str] = ()) -> list[Proxy]:
    """Return each proxy that is set, a platform's own ones first."""
    found: dict[tuple[str, int], Proxy] = {}
    for variable in (*own, *(name.lower() for name in own), *_PROXY_VARIABLES):
        proxy = (
            parse_proxy(variable, settings.value(variable)) if settings.value(variable) else None
        )
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


def endpoint(address: str, port: int = 443) -> Endpoint | None:
    """Return host and port of an address with or without a scheme; None if it is invalid."""
    scheme, there, rest = address.strip().partition("://")
    if not there:
        scheme, rest = "", address.strip()
    place = rest.partition("/")[0].partition("?")[0].rpartition("@")[2]
    host, _, number = place.rpartition(":") if not place.endswith("]") else (place, "", "")
    if not host:
        host, number = place, ""
    chosen = number if number.isdecimal() else str(_SCHEMES.get(scheme.lower(), port))
    valid = host and 0 < int(chosen[:6]) < 65536
    return Endpoint(host.strip("[]").lower(), int(chosen)) if valid else None


_URLS = ("base_url", "url", "api", "api_base")


def provider_endpoints(settings: Settings) -> dict[str, Endpoint]:
    """Return the main and the fallback providers with their addresses."""
    found: dict[str, Endpoint] = {}
    for name, block in _provider_blocks(settings.config):
        url = _address(settings, name, block)
        end = endpoint(url) if url and "$" not in url else None
        if end:
            found.setdefault(name or end.host, end)
    return found


def _provider_blocks(config: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for block in (section(config, "model"), section(config, "fallback_model")):
        if block:
            yield str(block.get("provider") or ""), block
    fallbacks = config.get("fallback_providers")
    for fallback in fallbacks if isinstance(fallbacks, list) else ():
        if isinstance(fallback, Mapping):
            yield str(fallback.get("provider") or ""), fallback


def _address(settings: Settings, name: str, block: Mapping[str, Any]) -> str | None:
    """Return the URL from the provider's block, this block, its variable, or the built-in one."""
    own = section(settings.config, "providers", name)
    for source in (own, block):
        for key in _URLS:
            if isinstance(source.get(key), str) and source[key].strip():
                return str(source[key])
    facts = _known_providers().get(name.lower())
    if facts is None:
        return None
    variable = facts.get("variable", "")
    return settings.value(variable) or str(facts["base_url"])


def _known_providers() -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for name, facts in load_knowledge("providers").items():
        found[name] = facts
        for alias in facts.get("aliases", ()):
            found.setdefault(alias, facts)
    return found
