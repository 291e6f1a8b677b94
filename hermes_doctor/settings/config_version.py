"""Compare config.yaml's version with the release's, and list what the next update would change."""

from __future__ import annotations

from typing import Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.settings.inputs import section
from hermes_doctor.settings.resolved import Resolved

_COUNTS_AS_NONE = (0, 16)
"""Since this release, a file without a version counts as the oldest."""


class ConfigVersion(NamedTuple):
    """The version in the file, the release's version, and what the update between them loses."""

    written: int | None
    newest: int
    losses: tuple[str, ...]
    harms: bool
    """Whether one of the losses is in use."""


def config_version(found: Resolved) -> ConfigVersion:
    """Return the version and the losses of this home's file."""
    world = found.world
    newest = max(int(one) for one in world.release.topic("config_version"))
    written = _number(world.raw.get("_config_version"))
    missing_is_old = found.release >= _COUNTS_AS_NONE
    counted = written if written is not None else 0 if missing_is_old else newest
    losses = []
    token = world.readings.own.values.get("ANTHROPIC_TOKEN")
    if counted < 9 and token:
        losses.append("ANTHROPIC_TOKEN in .env is made blank")
    if counted < 12 and isinstance(world.raw.get("custom_providers"), list):
        losses.append("custom_providers becomes providers, without fields that it does not know")
    if counted < 17 and any(
        str(k).startswith("summary_") for k in section(world.raw, "compression")
    ):
        losses.append("compression.summary_… moves to auxiliary.compression")
    if counted < newest and b"#" in world.document.data:
        losses.append("comments in config.yaml are lost")
    harms = bool(token) and counted < 9
    return ConfigVersion(written, newest, tuple(losses), harms)


def _number(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None
