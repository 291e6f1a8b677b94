"""Find deprecated settings, including HERMES_MAX_ITERATIONS where config.yaml overrides it."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.settings import unknown_keys
from hermes_doctor.settings.inputs import section
from hermes_doctor.settings.resolved import Resolved
from hermes_doctor.settings.sourced_text import Source


class DeprecatedSetting(NamedTuple):
    """A deprecated setting, and what to use instead."""

    name: str
    source: Source
    replacement: str
    overridden: bool = False
    """Whether the replacement is set too and overrides it."""


def deprecated_settings(found: Resolved) -> Iterator[DeprecatedSetting]:
    """Yield the deprecated settings that are set, according to the release's own list."""
    world = found.world
    for name, instead in unknown_keys.entries_for_release("older", world.release).items():
        variable = world.readings.dotenv.values.get(name)
        if variable:
            yield DeprecatedSetting(name, variable.source, instead)
        above, _, key = name.rpartition(".")
        if above and key in section(world.raw, above):
            yield DeprecatedSetting(name, world.document.source(above, key), instead)
    turns = section(world.raw, "agent").get("max_turns")
    limit = world.readings.dotenv.values.get("HERMES_MAX_ITERATIONS")
    if turns is not None and limit and limit.strip() != str(turns):
        yield DeprecatedSetting(
            "HERMES_MAX_ITERATIONS", limit.source, "agent.max_turns in config.yaml", True
        )
