"""Find chats of platforms that the installed Hermes does not know and silently drops."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hermes_doctor.knowledge.data import load_knowledge
from hermes_doctor.knowledge.releases import parse_release
from hermes_doctor.lazy import NamedTuple

_COMPLETE = (0, 16)
"""Before this release, the platforms depend on how Hermes was installed."""
_ALWAYS = "local"


class UnknownPlatform(NamedTuple):
    """A platform that has chats although the release does not know it."""

    name: str
    chats: int
    since: str | None
    """The first release that has it; None if it was never part of Hermes."""


def unknown_platforms(values: Any, release: tuple[int, ...]) -> list[UnknownPlatform]:
    """Return the platforms of chats that this release does not know."""
    if not isinstance(values, dict):
        return []
    known = load_knowledge("enabling")
    found = []
    for name, count in Counter(filter(None, map(_platform, values.values()))).items():
        if name not in known:
            found.append(UnknownPlatform(name, count, None))
            continue
        since = min((one for form in known[name] for one in form["releases"]), key=parse_release)
        if max(release, _COMPLETE) < parse_release(since):
            found.append(UnknownPlatform(name, count, since))
    return found


def _platform(entry: object) -> str | None:
    """Return the platform of a chat, if Hermes would look it up and not fail earlier."""
    origin = entry.get("origin") if isinstance(entry, dict) else None
    if not isinstance(origin, dict) or "chat_id" not in origin:
        return None
    name = origin.get("platform")
    plain = name.strip().lower() if isinstance(name, str) else _ALWAYS
    return plain if plain != _ALWAYS else None
