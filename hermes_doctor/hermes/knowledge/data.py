"""Load the facts about each Hermes release, and what `hermes-doctor learn` stored about one.

A file of `learn` has the answers of one commit or version, for one owner of homes: what the code of
one user says is not used for the home of another. It is used only if no other user can write to it
or to a folder on the way to it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE, read, user_home
from hermes_doctor.hermes.knowledge.versions import parse_release

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
