"""The rules, built-in providers and systemd unit of one Hermes release."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.hermes.knowledge.data import load_knowledge
from hermes_doctor.hermes.knowledge.versions import parse_release


class Release:
    """A Hermes release; an unknown one uses the data of the nearest older known one."""

    def __init__(self, version: tuple[int, ...] | None = None) -> None:
        knowledge = load_knowledge("resolution")
        known = sorted(map(parse_release, knowledge["releases"]))
        fitting = [one for one in known if version is None or one <= version]
        self.version = fitting[-1] if fitting else known[0]
        self._knowledge = knowledge
        self._topics: dict[str, dict[str, Any]] = {}

    def since(self, *version: int) -> bool:
        """Tell whether this release is that one or newer."""
        return self.version >= version

    def topic(self, name: str) -> dict[str, Any]:
        """Return the entries of a topic for this release."""
        if name not in self._topics:
            self._topics[name] = self._now(self._knowledge[name])
        return self._topics[name]

    def key_topic(self, name: str) -> dict[str, Any]:
        """Return the entries of a topic of the knowledge about keys for this release."""
        return self._now(load_knowledge("keys").get(name, {}))

    def _now(self, entries: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
        """Return the entries that this release has, in its form."""
        return {
            entry: form["is"]
            for entry, forms in entries.items()
            for form in forms
            if parse_release(form["from"]) <= self.version <= parse_release(form["to"])
        }

    def ever(self, name: str) -> dict[str, dict[str, Any]]:
        """Return every entry of a topic in any release, in its newest form: from, to, is."""
        return {entry: forms[-1] for entry, forms in self._knowledge[name].items()}

    @cached_property
    def registry(self) -> Mapping[str, Mapping[str, Any]]:
        """The built-in providers in the order in which they are tried."""
        found = self.topic("registry")
        order = next(iter(self.topic("order")))
        return {name: found[name] for name in order.split()}

    @cached_property
    def aliases(self) -> Mapping[str, str]:
        """Other names of providers."""
        return self.topic("aliases")

    @cached_property
    def addresses(self) -> Mapping[str, str]:
        """Addresses that are not in the registry."""
        return self.topic("addresses")

    @cached_property
    def api_modes(self) -> frozenset[str]:
        """The valid values of `api_mode`."""
        return frozenset(self.topic("api_modes"))

    @cached_property
    def placeholders(self) -> frozenset[str]:
        """Values that are not accepted as a key."""
        return frozenset(self.topic("placeholders"))

    @cached_property
    def names(self) -> frozenset[str]:
        """The variables that Hermes knows."""
        return frozenset(self.topic("names"))

    def is_usable(self, secret: str | None) -> bool:
        """Tell whether Hermes accepts this as a key: long enough and not a placeholder."""
        bare = (secret or "").strip()
        return len(bare) >= 4 and bare.lower() not in self.placeholders

    def provider(self, name: str) -> str | None:
        """Return the provider that a name stands for; None if this release does not know it."""
        meant = self.aliases.get(name, name)
        return meant if meant in ("openrouter", "custom") or meant in self.registry else None


class ReleaseUnit(NamedTuple):
    """The settings that a release writes into its systemd unit."""

    release: str
    settings: Mapping[str, str]
    """The settings of [Unit] and [Service], without those that depend on the machine."""
    drain: float
    """Seconds that work in progress gets before a restart, unless config.yaml overrides it."""


def service_plan(version: str) -> ReleaseUnit | None:
    """Return the unit of a release; for an unknown release, that of the newest known before it."""
    from hermes_doctor.hermes.knowledge.versions import parse_release

    known = load_knowledge("services")
    before = [name for name in known if parse_release(name) <= parse_release(version)]
    if not before:
        return None
    name = max(before, key=parse_release)
    return ReleaseUnit(name, known[name]["unit"], float(known[name]["drain"]))
