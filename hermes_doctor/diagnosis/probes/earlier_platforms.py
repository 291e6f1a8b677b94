"""Find the platforms that people used with this home, from what Hermes wrote about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import count
from hermes_doctor.hermes.knowledge.data import load_knowledge
from hermes_doctor.hermes.processes.runtime_files import PlatformState

PROGRAMS = ("api_server", "webhook", "msgraph_webhook", "homeassistant", "a2a")
"""Platforms through which programs talk to the bot, not people."""
SOURCES = "SELECT source, count(*) FROM sessions GROUP BY source ORDER BY 2 DESC LIMIT 40"
"""Asks state.db for the platforms of its conversations."""


class EarlierPlatform(NamedTuple):
    """A platform that was used, and where that is written."""

    name: str
    label: str
    variables: tuple[str, ...]
    """The variables that switch it on."""
    where: str
    what: str


def find(
    sources: Iterable[Sequence[Any]], states: Mapping[str, PlatformState]
) -> list[EarlierPlatform]:
    """Return the platforms in the message history, then those that a gateway once connected."""
    found: dict[str, EarlierPlatform] = {}
    known = load_knowledge("platforms")["platforms"]
    for name, where, what in (*_in_history(sources), *_in_state(states)):
        facts = known.get(name)
        if facts and name not in PROGRAMS and name not in found:
            variables = tuple(facts["variables"])
            found[name] = EarlierPlatform(name, facts["label"], variables, where, what)
    return list(found.values())


def _in_history(sources: Iterable[Sequence[Any]]) -> Iterator[tuple[str, str, str]]:
    for source, number in sources:
        yield str(source), "state.db", count(int(number), "conversation")


def _in_state(states: Mapping[str, PlatformState]) -> Iterator[tuple[str, str, str]]:
    for name, platform_state in states.items():
        if platform_state.state in ("connected", "disconnected"):
            yield name, "gateway_state.json", "was connected"
