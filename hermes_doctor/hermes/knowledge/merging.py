"""Take the files of knowledge apart into the answers of each release, and put them together again.

A file says for each fact which releases it holds for. To add a release, its answers are put beside
those of the others. `split` returns {release: answer}, `join` returns the file's content.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hermes_doctor.hermes.knowledge import parse_release

Said = dict[str, Any]
"""The answers of each release, oldest first."""
NAMES = ("resolution", "keys", "enabling", "access", "cron", "loaders", "breaks", "services")
"""The files that releases answer for, besides `schemas/`."""
PARTS = ("tables", "virtual", "views", "indexes", "triggers")


def add(
    name: str, document: dict[str, Any], known: Iterable[str], version: str, answer: Any
) -> dict[str, Any]:
    """Return a file's content with the answer of one more release, or with its new answer."""
    said = split(name, document, known) | {version: answer}
    return join(name, {one: said[one] for one in sorted(said, key=parse_release)})


def split(name: str, document: dict[str, Any], known: Iterable[str]) -> Said:
    """Return the answers of the known releases, oldest first."""
    versions = sorted(known, key=parse_release)
    if name == "services":
        return {version: document[version] for version in versions if version in document}
    if name in ("resolution", "keys"):
        return _split_ranges(document, versions)
    if name in ("enabling", "access"):
        return {version: _forms_of(document, version) for version in versions}
    if name == "cron":
        return {
            version: {
                entry: value
                for entry, since in document.items()
                if (value := _value_at(since, version)) is not None
            }
            for version in versions
        }
    if name == "loaders":
        return {
            version: {
                kind: {
                    flaw: outcome
                    for flaw, since in flaws.items()
                    if (outcome := _value_at(since, version)) is not None
                }
                for kind, flaws in document.items()
            }
            for version in versions
        }
    if name == "breaks":
        return {
            version: {
                entry: {"file": fault["file"], "lacks": fault["lacks"]}
                for entry, faults in document.items()
                for fault in faults
                if version in fault["releases"]
            }
            for version in versions
        }
    return {
        version: {
            "version": number,
            **{part: _forms_of(document.get(part, {}), version) for part in PARTS},
        }
        for version, number in document["releases"].items()
    } | ({"": document["database"]} if "database" in document else {})


def join(name: str, said: Said) -> dict[str, Any]:
    """Return the content of a file."""
    if name == "services":
        return dict(said)
    if name in ("resolution", "keys"):
        return _join_ranges(said)
    if name in ("enabling", "access"):
        return dict(sorted(_join_forms(said).items()))
    if name == "cron":
        return dict(sorted(_join_since(said).items()))
    if name == "loaders":
        kinds = sorted({kind for answer in said.values() for kind in answer})
        return {
            kind: {
                flaw: {version: value for version, value in since.items() if value is not None}
                for flaw, since in _join_since(
                    {version: answer.get(kind, {}) for version, answer in said.items()},
                    ends=False,
                ).items()
            }
            for kind in kinds
        }
    if name == "breaks":
        return _join_breaks(said)
    answers = {version: answer for version, answer in said.items() if version}
    return {
        "database": said[""],
        "releases": {version: answer["version"] for version, answer in answers.items()},
        **{
            part: _join_forms({v: answer.get(part, {}) for v, answer in answers.items()})
            for part in PARTS
        },
    }


def _split_ranges(document: Mapping[str, Any], versions: list[str]) -> Said:
    place = {version: n for n, version in enumerate(versions)}
    said: Said = {version: {topic: {} for topic in document} for version in versions}
    for topic, entries in document.items():
        for entry, forms in entries.items():
            for form in forms:
                for version in versions[place[form["from"]] : place[form["to"]] + 1]:
                    said[version][topic][entry] = form["is"]
    return said


def _join_ranges(said: Said) -> dict[str, Any]:
    """Return each entry's variants by topic, each with its first and its last release."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    before: str | None = None
    for version, answer in said.items():
        for topic, entries in answer.items():
            there = found.setdefault(topic, {})
            for entry, form in entries.items():
                forms = there.setdefault(entry, [])
                if forms and forms[-1]["is"] == form and forms[-1]["to"] == before:
                    forms[-1]["to"] = version
                else:
                    forms.append({"from": version, "to": version, "is": form})
        before = version
    return {topic: dict(sorted(entries.items())) for topic, entries in found.items()}


def _forms_of(document: Mapping[str, Any], version: str) -> dict[str, Any]:
    return {
        name: {key: value for key, value in form.items() if key != "releases"}
        for name, forms in document.items()
        for form in forms
        if version in form["releases"]
    }


def _join_forms(said: Said) -> dict[str, list[dict[str, Any]]]:
    """Return the variants of each entry, each with the releases that have it."""
    found: dict[str, list[dict[str, Any]]] = {}
    for version, answer in said.items():
        for name, form in answer.items():
            forms = found.setdefault(name, [])
            for one in forms:
                if {**one, "releases": None} == {**form, "releases": None}:
                    one["releases"].append(version)
                    break
            else:
                forms.append({"releases": [version], **form})
    return found


def _value_at(since: Mapping[str, Any], version: str) -> Any:
    """Return the value that an entry has in a release; None if it has none."""
    number = parse_release(version)
    fitting = [value for one, value in since.items() if parse_release(one) <= number]
    return fitting[-1] if fitting else None


def _join_since(said: Said, *, ends: bool = True) -> dict[str, dict[str, Any]]:
    """Return by entry its values, each with the first release that has it.

    With `ends`, None is the value of a release that no longer has the entry.
    """
    found: dict[str, dict[str, Any]] = {}
    for version, answer in said.items():
        for name in [*found, *(one for one in answer if one not in found)]:
            since = found.setdefault(name, {})
            value = answer.get(name)
            if value != next(reversed(since.values()), None) and (ends or value is not None):
                since[version] = value
    return found


def _join_breaks(said: Said) -> dict[str, list[dict[str, Any]]]:
    """Return by platform what is missing, in which releases, and which release repairs it."""
    found = _join_forms(said)
    order = list(said)
    for name, faults in found.items():
        for place, one in enumerate(faults):
            after = order[order.index(one["releases"][-1]) + 1 :]
            cured = next((version for version in after if name not in said[version]), None)
            releases = one.pop("releases")
            faults[place] = {**one, "releases": releases, "cured_by": cured}
    return dict(sorted(found.items()))
