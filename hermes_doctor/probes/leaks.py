"""Secrets of a home in its own logs: looked for by their values, told by their names."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.files import MEGABYTE, read_tail
from hermes_doctor.home import Home
from hermes_doctor.model import CouldNotLook
from hermes_doctor.patterns import pattern
from hermes_doctor.settings.clear import find as in_clear, texts
from hermes_doctor.settings.secret import state
from hermes_doctor.settings.text import Text
from hermes_doctor.settings.world import World
from hermes_doctor.values import NamedTuple

LOGS = ("gateway.log", "agent.log", "errors.log")
QUICK, DEEP = 64 * 1024, 16 * MEGABYTE
_NAMES = pattern(r"_(API_KEY|TOKEN|SECRET|PASSWORD|KEY)$|^QQ_CLIENT_SECRET$|^HASS_TOKEN$")
_SHORTEST = 12
"""What is shorter stands in a log for any reason."""


class Leak(NamedTuple):
    """One secret in one log."""

    name: str
    """Its variable, or its path in config.yaml."""
    log: str
    line: int | None
    """None where the log was not read from its beginning on."""


def find(home: Home, world: World, *, deep: bool) -> list[Leak]:
    """Every secret of this home that the end of a log holds."""
    secrets = dict(_secrets(world))
    found = []
    for name in LOGS if secrets else ():
        try:
            data, taken = read_tail(home / "logs" / name, DEEP if deep else QUICK)
        except (FileNotFoundError, CouldNotLook):
            continue
        for value, called in secrets.items():
            place = data.find(value)
            if place >= 0:
                whole = taken.size <= len(data)
                line = data.count(b"\n", 0, place) + 1 if whole else None
                found.append(Leak(called, f"logs/{name}", line))
    return found


def _secrets(world: World) -> Iterator[tuple[bytes, str]]:
    """The values that must stand nowhere else, each with the name that it goes by."""
    for name, value in world.readings.own.values.items():
        if _NAMES.search(name) and _is_one(world, value):
            yield value.strip().encode("utf-8", "replace"), name
    clear = {one.path: one for one in in_clear(world)}
    for path, said in texts(world.raw) if clear else ():
        source = world.document.source(*path)
        if source.name in clear and _is_one(world, Text(said, source)):
            yield said.strip().encode("utf-8", "replace"), source.name


def _is_one(world: World, value: Text) -> bool:
    bare = value.strip()
    odd = any(char.isdigit() for char in bare)
    return len(bare) >= _SHORTEST and odd and state(world.release, value) == "usable"
