"""Load the JSON files with the facts about each Hermes release."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hermes_doctor.knowledge.releases import parse_release
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.system.files import user_home

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
    from hermes_doctor.knowledge import merging

    return merging.add(name, data, _shipped("services"), learned.version, learned.answers[name])


def _shipped(name: str) -> dict[str, Any]:
    import json

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
    from hermes_doctor.system import root_parent

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
