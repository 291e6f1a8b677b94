"""Determine on which ports platforms listen, and which setting decides that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermes_doctor.home import Home
from hermes_doctor.knowledge.data import load_knowledge
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.settings import config_file, env_file, env_parsers
from hermes_doctor.settings.access import started_platforms
from hermes_doctor.settings.document import Document
from hermes_doctor.settings.inputs import SettingInputs
from hermes_doctor.settings.platform_block import Block
from hermes_doctor.settings.release import Release

_BRIDGE: Mapping[str, Any] = {"port": 3000, "port_variables": [], "port_keys": ["bridge_port"]}
"""The WhatsApp bridge listens too, for the gateway only."""


class ListeningPort(NamedTuple):
    """A port that a platform opens."""

    platform: str
    label: str
    port: int
    place: str
    """The line that sets it, or what starts the platform if the port is the default."""
    variable: str | None
    """The variable that sets it in .env, if there is one."""
    key: str | None
    """The key that sets it in config.yaml."""


def listening_ports(world: SettingInputs) -> Iterator[ListeningPort]:
    """Yield the ports of all platforms that would start."""
    known: Mapping[str, Any] = load_knowledge("platforms")["platforms"]
    for name, because in started_platforms(world).items():
        facts = known[name]
        listens = _BRIDGE if name == "whatsapp" else facts.get("listens")
        if not listens:
            continue
        block = Block(world, name)
        if not _applies(block, listens.get("when")):
            continue
        variables, keys = listens["port_variables"], listens["port_keys"]
        found = block.value(keys[0] if keys else "", *variables)
        valid = found.isdecimal() and 0 < int(found[:6]) < 65536
        yield ListeningPort(
            platform=name,
            label=facts["label"],
            port=int(found) if valid else listens["port"],
            place=found.source.place if valid else because,
            variable=variables[0] if variables else None,
            key=keys[0] if keys else None,
        )


def usual_ports() -> frozenset[int]:
    """Return the default ports of platforms."""
    known: Mapping[str, Any] = load_knowledge("platforms")["platforms"]
    return frozenset(one["listens"]["port"] for one in known.values() if "listens" in one)


def inputs_of_home(home: Home, release: Release) -> SettingInputs:
    """Return the inputs of another home's gateway, from that home's files only."""
    written, env = config_file.read(home), env_file.read(home)
    return SettingInputs(
        release=release,
        document=Document(written.data if written else b""),
        readings=env_parsers.read(env, release, {}) if env else env_parsers.NOTHING,
    )


def _applies(block: Block, when: list[str] | None) -> bool:
    if when is None:
        return True
    variable, *values = when
    said = block.value(variable.partition("_")[2].lower(), variable)
    return said in values if values else bool(said)
