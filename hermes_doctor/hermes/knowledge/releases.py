"""The facts about each Hermes release, and what `hermes-doctor learn` stored about one.

A file of `learn` has the answers of one commit or version, for one owner of homes: what the code of
one user says is not used for the home of another. It is used only if no other user can write to it
or to a folder on the way to it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE, read, user_home
from hermes_doctor.hermes.knowledge import parse_release


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
    known = load_knowledge("services")
    before = [name for name in known if parse_release(name) <= parse_release(version)]
    if not before:
        return None
    name = max(before, key=parse_release)
    return ReleaseUnit(name, known[name]["unit"], float(known[name]["drain"]))


_HERE = Path(__file__).parent
NEWEST = (0, 20, 5)
"""The newest release that the files describe; tools/add_release.py writes these lines."""
NEWEST_CONFIG, NEWEST_SCHEMA = 38, 26
"""The version that it writes into config.yaml, and the schema version of its state.db."""


class Learned(NamedTuple):
    """What one Hermes said about itself."""

    version: str
    """Its release, as numbers with dots."""
    commit: str
    """The commit of its checkout; empty if it is not a checkout."""
    config: int
    """The version that it writes into config.yaml."""
    schema: int
    """The schema version of its state.db."""
    answers: Mapping[str, Any]
    """Its answer for each file of knowledge."""

    @property
    def release(self) -> tuple[int, ...]:
        """The version as comparable numbers."""
        return parse_release(self.version)


caches: list[Callable[[], None]] = []
"""What clears the caches of values that were made from the files."""
_learned: Learned | None = None


_loaded: dict[str, dict[str, Any]] = {}


def load_knowledge(name: str) -> dict[str, Any]:
    """Load one file by its path below this folder, without `.json`.

    It includes what was learned from the installed Hermes, if `use` was called.
    """
    found = _loaded.get(name)
    if found is None:
        found = _loaded[name] = _load(name)
    return found


def loaded_names() -> list[str]:
    """Return the names of the files that were loaded so far."""
    return [*_loaded]


def _load(name: str) -> dict[str, Any]:
    data = _shipped(name)
    learned = _learned
    if learned is None or name not in learned.answers:
        return data
    from hermes_doctor.hermes.knowledge import merging

    return merging.add(name, data, _shipped("services"), learned.version, learned.answers[name])


def _shipped(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(_by_root(name) if _by_root else read_shipped(name))
    return data


_NAME = re.compile(r"[\w.-]+(?:/[\w.-]+)*")
_by_root: Callable[[str], str] | None = None


def read_shipped(name: str) -> str:
    """Return the text of one file."""
    if not _NAME.fullmatch(name) or ".." in name:
        raise ValueError(name)
    return (_HERE / f"{name}.json").read_text("utf-8")


def ask_root() -> None:
    """Let root read the files from now on: this process may not open them."""
    from hermes_doctor.core.system import root_parent

    global _by_root
    _by_root = partial(root_parent.ask_root, "knowledge")


def use(learned: Learned | None) -> None:
    """Add what was learned from an installed Hermes to what the files say."""
    global _learned
    if learned == _learned:
        return
    _learned = learned
    _loaded.clear()
    for clear in caches:
        clear()


def learned_of(release: tuple[int, ...]) -> Learned | None:
    """Return what is in use that was learned from this release."""
    return _learned if _learned is not None and _learned.release == release else None


def learned_folder() -> str:
    """Return the folder in which `hermes-doctor learn` stores what it learns."""
    named = os.environ.get("XDG_DATA_HOME", "")
    base = named if named.startswith("/") else f"{user_home()}/.local/share"
    return f"{base}/hermes-doctor/learned"


def shipped_releases() -> list[str]:
    """Return the releases that the files describe, without the learned one."""
    return list(_shipped("services"))


LEARNED_FORMAT = 1
MOST_LEARNED = 16 * MEGABYTE
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+]{0,39}")


def learned_path(version: str, commit: str | None, owner: int) -> Path | None:
    """Return the file for a Hermes and an owner; None if its version is not a plain one."""
    if not _VERSION.fullmatch(version):
        return None
    return (
        Path(learned_folder()) / str(owner) / f"{version}{f'-{commit[:12]}' if commit else ''}.json"
    )


def load_learned(path: Path) -> Learned | None:
    """Read a file; None if it is missing, not trusted, or of another format."""
    from hermes_doctor.core.system.accounts import why_untrusted

    try:
        data, _ = read(path, MOST_LEARNED)
        if why_untrusted(path) is not None:
            return None
        return parse_learned(json.loads(data))
    except (OSError, CouldNotLook, ValueError, RecursionError):
        return None


def parse_learned(said: Any) -> Learned | None:
    """Return the content of a file; None if it is of another format."""
    if not isinstance(said, dict) or said.get("format") != LEARNED_FORMAT:
        return None
    fields = {"version": str, "commit": str, "config": int, "schema": int, "answers": dict}
    if not all(type(said.get(name)) is kind for name, kind in fields.items()):
        return None
    return Learned(*(said[name] for name in fields))


def learned_document(learned: Learned) -> dict[str, Any]:
    """Return the content of a file."""
    return {"format": LEARNED_FORMAT, **learned._asdict()}
