"""What is known about one release: its providers as data, and how its rules differ by its age."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from hermes_doctor.knowledge.data import load_knowledge
from hermes_doctor.knowledge.releases import release as numbers


class Release:
    """One Hermes release; one that is not known is taken for the nearest older one that is."""

    def __init__(self, version: tuple[int, ...] | None = None) -> None:
        knowledge = load_knowledge("resolution")
        self._known = {name: numbers(name) for name in knowledge["releases"]}
        known = sorted(self._known.values())
        fitting = [one for one in known if version is None or one <= version]
        self.version = fitting[-1] if fitting else known[0]
        self._knowledge = knowledge
        self._topics: dict[str, dict[str, Any]] = {}

    def since(self, *version: int) -> bool:
        """Whether this release is that one or newer."""
        return self.version >= version

    def topic(self, name: str) -> dict[str, Any]:
        """The entries of a topic that this release has."""
        found = self._topics.get(name)
        if found is None:
            known, version = self._known, self.version
            found = self._topics[name] = {
                entry: form["is"]
                for entry, forms in self._knowledge[name].items()
                for form in forms
                if known[form["from"]] <= version <= known[form["to"]]
            }
        return found

    def ever(self, name: str) -> dict[str, dict[str, Any]]:
        """Every entry of a topic that any release has, in its newest form: from, to, is."""
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
        """Addresses that belong to no entry of the registry."""
        return self.topic("addresses")

    @cached_property
    def api_modes(self) -> frozenset[str]:
        """The words that `api_mode` takes."""
        return frozenset(self.topic("api_modes"))

    @cached_property
    def placeholders(self) -> frozenset[str]:
        """Values that are not taken for a key."""
        return frozenset(self.topic("placeholders"))

    @cached_property
    def names(self) -> frozenset[str]:
        """The variables that Hermes knows."""
        return frozenset(self.topic("names"))

    def is_usable(self, secret: str | None) -> bool:
        """Whether Hermes takes this for a key: not too short, and no placeholder."""
        bare = (secret or "").strip()
        return len(bare) >= 4 and bare.lower() not in self.placeholders

    def provider(self, name: str) -> str | None:
        """The provider that a name leads to; None when this release knows none."""
        meant = self.aliases.get(name, name)
        return meant if meant in ("openrouter", "custom") or meant in self.registry else None
