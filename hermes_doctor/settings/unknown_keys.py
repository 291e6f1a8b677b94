"""Find keys of config.yaml that are typos of keys which this release reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermes_doctor.knowledge.data import load_knowledge
from hermes_doctor.knowledge.releases import parse_release
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.settings.closest_word import closest_word
from hermes_doctor.settings.document import Document, Path
from hermes_doctor.settings.release import Release

_PLATFORM, _PROVIDER = "platform", "provider"
_ENTRIES = {"providers": _PROVIDER, "custom_providers": _PROVIDER, "platforms": _PLATFORM}
"""Sections whose entries have arbitrary names but known keys."""


class MisspeltKey(NamedTuple):
    """A key that is probably a typo of another one."""

    path: Path
    meant: str
    line: int


def misspelt_keys(document: Document, release: Release) -> Iterator[MisspeltKey]:
    """Yield the unknown keys of this file that are close to a known one.

    Unknown keys that resemble no known key are not reported, because plugins of Hermes read keys
    that no release lists.
    """
    knowledge = load_knowledge("keys")
    sections = _sections(knowledge["keys"])
    platforms = load_knowledge("enabling")
    elsewhere = {key for section in sections.values() for key in section} | {*knowledge["read"]}
    for path, place in document.keys.items():
        key = path[-1]
        known = _known(path, sections, platforms)
        if known is None or key in known or not isinstance(key, str) or key.isupper():
            continue
        here = [name for name, forms in known.items() if is_in_release(forms, release)]
        meant = None if key in elsewhere else closest_word(key, here)
        if meant and (*path[:-1], meant) not in document.keys:
            yield MisspeltKey(path, meant, place.line)


def _known(
    path: Path, sections: Mapping[str, dict[str, Any]], platforms: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the keys that are allowed next to this one; None where any key is."""
    first = path[0]
    if len(path) == 1:
        return sections[""] | dict(platforms)
    if len(path) == 2 and first in platforms:
        return sections[_PLATFORM] | sections.get(str(first), {})
    if len(path) == 2 and first not in _ENTRIES:
        return sections.get(str(first))
    if len(path) == 3 and first in _ENTRIES:
        more = sections.get(str(path[1]), {}) if path[1] in platforms else {}
        return sections[_ENTRIES[str(first)]] | more
    return None


def _sections(keys: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, forms in keys.items():
        section, _, key = name.rpartition(".")
        found.setdefault(section, {})[key] = forms
    return found


def is_in_release(forms: Any, release: Release) -> bool:
    """Return whether a key exists in this release."""
    return any(
        "from" not in form
        or parse_release(form["from"]) <= release.version <= parse_release(form["to"])
        for form in forms
    )


def entries_for_release(topic: str, release: Release) -> dict[str, Any]:
    """Return the entries of a topic for this release."""
    return {
        entry: form["is"]
        for entry, forms in load_knowledge("keys").get(topic, {}).items()
        for form in forms
        if parse_release(form["from"]) <= release.version <= parse_release(form["to"])
    }
