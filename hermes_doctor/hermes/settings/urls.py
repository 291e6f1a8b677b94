"""Derive from a provider's address its protocol and its owner, as Hermes does."""

from __future__ import annotations

from urllib.parse import urlparse

from hermes_doctor.hermes.knowledge.releases import Release

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
