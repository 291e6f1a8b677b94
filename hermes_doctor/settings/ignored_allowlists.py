"""Find allowlists in config.yaml that Hermes ignores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hermes_doctor.knowledge.data import load_knowledge
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.settings import platforms
from hermes_doctor.settings.document import Path
from hermes_doctor.settings.inputs import section
from hermes_doctor.settings.resolved import Resolved

_PLACES = {"top": (), "platforms": ("platforms",), "gateway": ("gateway", "platforms")}
_OTHER = {"allowed_users": "allow_from", "allow_from": "allowed_users"}
_BY_VARIABLE = frozenset(
    ["slack", "feishu", "mattermost", "email", "sms", "signal", "wecom_callback"]
)
"""Platforms that take the list only from a variable."""


class IgnoredAllowlist(NamedTuple):
    """An allowlist that is ignored."""

    path: Path
    platform: str
    users: tuple[str, ...]
    """The users on the list who are not let in."""
    key: str | None
    """The key that would work in this place."""
    variable: str | None
    """The variable that would work instead."""


def ignored_allowlists(found: Resolved) -> Iterator[IgnoredAllowlist]:
    """Yield the ignored lists of platforms that would start."""
    for own in found.platforms:
        facts = platforms.form_of(load_knowledge("access").get(own.name, []), found.release) or {}
        bridged = facts.get("bridged", {})
        for place, above in _PLACES.items():
            block = section(found.world.raw, *above, own.name)
            for key, other in _OTHER.items():
                turned = f"{place} {other}" in bridged
                if key not in block or f"{place} {key}" in bridged:
                    continue
                if key == "allow_from" and not turned and own.name not in _BY_VARIABLE:
                    continue  # the adapter uses it itself
                users = tuple(one for one in _users(block[key]) if not own.admits(one))
                if users:
                    meant = other if turned and other not in block else None
                    path = (*above, own.name, key)
                    yield IgnoredAllowlist(path, own.name, users, meant, facts.get("users"))


def _users(value: Any) -> list[str]:
    listed = value if isinstance(value, list) else str(value or "").split(",")
    return [str(one).strip() for one in listed if str(one).strip()]
