"""What each platform needs to log in, and how much of it is there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hermes_doctor.knowledge.data import load_knowledge
from hermes_doctor.knowledge.releases import release as numbers
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.settings import key_state
from hermes_doctor.settings.access import started_platforms
from hermes_doctor.settings.inputs import ABSENT, World
from hermes_doctor.settings.platform_block import Block
from hermes_doctor.settings.platforms import form_of
from hermes_doctor.settings.sourced_text import Text


class Need(NamedTuple):
    """One thing that a platform cannot do without."""

    variables: tuple[str, ...]
    """Any of these sets it."""
    value: Text
    """Empty when nothing does. May be a secret."""
    state: str
    """`usable`, `placeholder`, `masked`, `unresolved` or `missing`."""


class Doubt(NamedTuple):
    """A value that does not look as it should."""

    variable: str
    value: Text
    shape: str
    """What it should look like, in words."""
    sure: bool
    """Whether whoever gives it out says so; else it is what has been seen."""


class Wanted(NamedTuple):
    """A platform that is set up, or half."""

    name: str
    label: str
    because: str | None
    """What starts it; None when Hermes does not start it."""
    shared: bool
    """Whether other programs have use for the same variables."""
    needs: tuple[Need, ...]
    doubts: tuple[Doubt, ...]


class Unknown(NamedTuple):
    """A platform that is set up and that the release does not have."""

    name: str
    label: str
    since: str
    """The first release that has it."""
    variable: str
    place: str


def unknown_platforms(world: World) -> Iterator[Unknown]:
    """Platforms whose variables are all set, and that only newer releases start."""
    labels: Mapping[str, Any] = load_knowledge("platforms")["platforms"]
    for name, forms in load_knowledge("enabling").items():
        if form_of(forms, world.release.version) is not None:
            continue
        first = min((one for form in forms for one in form["releases"]), key=numbers)
        for names in forms[0]["by"]:
            values = [world.getenv(one) for one in names]
            if all(values) and values[0].lower() not in ("false", "0", "no", "off"):
                place = values[0].source.place
                yield Unknown(name, labels[name]["label"], first, names[0], place)
                break


def wanted(world: World) -> Iterator[Wanted]:
    """Every platform that anything is set for; one that config.yaml switches off is not wanted."""
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
        yield Wanted(
            name=name,
            label=labels[name]["label"],
            because=started_platforms(world).get(name),
            shared=bool(facts.get("shared")),
            needs=needs,
            doubts=tuple(_doubts(block, facts)),
        )


def _need(block: Block, spelt: str) -> Need:
    pairs = [one.split(":") for one in spelt.split("|")]
    found = (block.value(key, variable) for variable, key in pairs)
    value = next((one for one in found if one), ABSENT)
    state = key_state.state(block.world.release, value) if value else "missing"
    return Need(tuple(variable for variable, _ in pairs), value, state)


def _doubts(block: Block, facts: Mapping[str, Any]) -> Iterator[Doubt]:
    if "unless" in facts and block.path(facts["unless"]):
        return  # a server of somebody else's, with tokens of its own
    keys = dict(pair.split(":") for spelt in facts["needs"] for pair in spelt.split("|"))
    for kind in ("shapes", "guesses"):
        for variable, (shape, words) in facts.get(kind, {}).items():
            value = block.value(keys.get(variable, ""), variable)
            usable = value and key_state.state(block.world.release, value) == "usable"
            if usable and not re.fullmatch(shape, value, re.ASCII):
                yield Doubt(variable, value, words, kind == "shapes")
