"""Determine which credentials each platform needs, and which of them are set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hermes_doctor.knowledge.data import load_knowledge
from hermes_doctor.knowledge.releases import parse_release
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.settings import key_state
from hermes_doctor.settings.access import started_platforms
from hermes_doctor.settings.inputs import ABSENT, SettingInputs
from hermes_doctor.settings.platform_block import Block
from hermes_doctor.settings.platforms import form_of
from hermes_doctor.settings.sourced_text import Text


class NeededCredential(NamedTuple):
    """A credential that a platform requires."""

    variables: tuple[str, ...]
    """Any of these sets it."""
    value: Text
    """Empty if it is not set. May be a secret."""
    state: str
    """`usable`, `placeholder`, `masked`, `unresolved` or `missing`."""


class Doubt(NamedTuple):
    """A value that does not have the expected format."""

    variable: str
    value: Text
    shape: str
    """The expected format, in words."""
    sure: bool
    """Whether the issuer documents the format; otherwise it was observed."""


class PlatformSetup(NamedTuple):
    """A platform that is set up, or partly set up."""

    name: str
    label: str
    because: str | None
    """What starts it; None if Hermes does not start it."""
    shared: bool
    """Whether other programs use the same variables."""
    needs: tuple[NeededCredential, ...]
    doubts: tuple[Doubt, ...]


class UnsupportedPlatform(NamedTuple):
    """A platform that is set up but unknown to the release."""

    name: str
    label: str
    since: str
    """The first release that has it."""
    variable: str
    place: str


def unknown_platforms(world: SettingInputs) -> Iterator[UnsupportedPlatform]:
    """Yield platforms whose variables are all set and that only newer releases start."""
    labels: Mapping[str, Any] = load_knowledge("platforms")["platforms"]
    for name, forms in load_knowledge("enabling").items():
        if form_of(forms, world.release.version) is not None:
            continue
        first = min((one for form in forms for one in form["releases"]), key=parse_release)
        for names in forms[0]["by"]:
            values = [world.getenv(one) for one in names]
            if all(values) and values[0].lower() not in ("false", "0", "no", "off"):
                place = values[0].source.place
                yield UnsupportedPlatform(name, labels[name]["label"], first, names[0], place)
                break


def platform_setups(world: SettingInputs) -> Iterator[PlatformSetup]:
    """Yield every platform with any setting, except those that config.yaml disables."""
    labels: Mapping[str, Any] = load_knowledge("platforms")["platforms"]
    for name, facts in load_knowledge("credentials").items():
        block = Block(world, name)
        needs = tuple(_need(block, spelt) for spelt in facts["needs"])
        if name not in started_platforms(world) and (
            block.is_off or not any(one.value for one in needs)
        ):
            continue
        if "instead" in facts and block.path(facts["instead"]):
            needs = ()
        yield PlatformSetup(
            name=name,
            label=labels[name]["label"],
            because=started_platforms(world).get(name),
            shared=bool(facts.get("shared")),
            needs=needs,
            doubts=tuple(_doubts(block, facts)),
        )


def _need(block: Block, spelt: str) -> NeededCredential:
    pairs = [one.split(":") for one in spelt.split("|")]
    found = (block.value(key, variable) for variable, key in pairs)
    value = next((one for one in found if one), ABSENT)
    state = key_state.state(block.world.release, value) if value else "missing"
    return NeededCredential(tuple(variable for variable, _ in pairs), value, state)


def _doubts(block: Block, facts: Mapping[str, Any]) -> Iterator[Doubt]:
    if "unless" in facts and block.path(facts["unless"]):
        return  # another server with its own kind of tokens
    keys = dict(pair.split(":") for spelt in facts["needs"] for pair in spelt.split("|"))
    for kind in ("shapes", "guesses"):
        for variable, (shape, words) in facts.get(kind, {}).items():
            value = block.value(keys.get(variable, ""), variable)
            usable = value and key_state.state(block.world.release, value) == "usable"
            if usable and not re.fullmatch(shape, value, re.ASCII):
                yield Doubt(variable, value, words, kind == "shapes")
