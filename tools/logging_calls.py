"""Extract every logging call of a release into hermes_doctor/hermes/knowledge/logging_calls.json.

    python -m tools.logging_calls                         all releases on the package index
    python -m tools.logging_calls 0.19.0                  one of them
    python -m tools.logging_calls --checkout DIR          a checkout; it needs no environment
    python -m tools.logging_calls --check 0.19.0          tells whether the file would change

A call that is the same in several releases is stored once, with the releases that have it as places
in the list of releases: `0-3 5`. A new release replaces only its own calls.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hermes_doctor.hermes.knowledge import parse_release
from hermes_doctor.hermes.knowledge.logging_calls import LoggingCall, module_of, places
from tools import logging_source, releases

STORED = Path(__file__).parents[1] / "hermes_doctor" / "hermes" / "knowledge" / "logging_calls.json"
Key = tuple[str, ...]
"""A call without its file: function, level, template, logger, error, caught types, traceback."""


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Extract the logging calls of a release.")
    parser.add_argument("version", nargs="*", help="releases on the package index")
    parser.add_argument("--checkout", type=Path, nargs="+", help="folders of checkouts")
    parser.add_argument("--check", action="store_true", help="only tell whether the file differs")
    given = parser.parse_args()
    found: dict[str, Path]
    if given.checkout:
        found = {checkout_version(folder): folder for folder in given.checkout}
    else:
        found = {version: packages(version) for version in given.version or releases.ALL}
    changed = update(found, write=not given.check)
    if changed:
        print(f"logging_calls.json {'differs' if given.check else 'written'}")
    return int(changed and given.check)


def update(found: dict[str, Path], *, write: bool) -> bool:
    """Extract the calls of releases from their folders; return whether that changes the file."""
    before = STORED.read_text() if STORED.exists() else ""
    document = json.loads(before) if before else {"releases": [], "plugins": {}, "calls": {}}
    for version, folder in found.items():
        document = add(document, version, extract(folder), plugin_names(folder))
    after = text_of(document)
    if write and after != before:
        STORED.write_text(after)
    return after != before


def packages(version: str) -> Path:
    """Return the folder with the packages of an installed release."""
    [found] = releases.python_of(version).parents[1].glob("lib/python3*/site-packages")
    return found


def checkout_version(folder: Path) -> str:
    """Return the release that a checkout calls itself."""
    return str(tomllib.loads((folder / "pyproject.toml").read_text())["project"]["version"])


def extract(folder: Path) -> list[LoggingCall]:
    """Return the logging calls of a release, by file."""
    found: list[LoggingCall] = []
    for path in source_files(folder):
        file = path.relative_to(folder).as_posix()
        found += logging_source.calls_in(path.read_text(encoding="utf-8"), file)
    return found


def source_files(folder: Path) -> list[Path]:
    """Return the Python files that belong to a release, of an environment or a checkout."""
    record = next(folder.glob("hermes_agent-*.dist-info/RECORD"), None)
    if record:
        named = [line.partition(",")[0] for line in record.read_text().splitlines()]
        return sorted(folder / name for name in named if name.endswith(".py"))
    setup = tomllib.loads((folder / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = [folder / f"{name}.py" for name in setup["py-modules"]]
    for name in setup["packages"]["find"]["include"]:
        if not name.endswith(".*"):
            found += (folder / name).rglob("*.py")
    return sorted(path for path in found if path.is_file())


def plugin_names(folder: Path) -> dict[str, str]:
    """Return the name that each bundled plugin gives itself, by its folder."""
    found = {}
    for path in sorted((folder / "plugins").rglob("plugin.y*ml")):
        if name := re.search(r"^name:\s*[\"']?([\w-]+)", path.read_text(), re.MULTILINE):
            found[path.parent.relative_to(folder).as_posix()] = name[1]
    return found


def add(
    document: dict[str, Any], version: str, calls: Iterable[LoggingCall], plugins: dict[str, str]
) -> dict[str, Any]:
    """Return the content of the file with the calls of one more release, or with its new ones."""
    by_call: dict[tuple[str, Key], set[str]] = {}
    for file, key, having in _stored(document):
        by_call[file, key] = having - {version}
    for one in calls:
        named = "" if one.logger == module_of(one.file) else one.logger or "*"
        key = (
            one.function, one.level, one.template, named, one.error, one.caught,
            "1" if one.traceback else "",
        )  # fmt: skip
        by_call.setdefault((one.file, key), set()).add(version)
    every = sorted({*document["releases"], version}, key=parse_release)
    listed: dict[str, list[list[Any]]] = {}
    for (file, key), having in sorted(by_call.items()):
        if having:
            function, level, template, named, error, caught, traced = key
            logger = None if not named else "" if named == "*" else named
            spans = _spans(having, every)
            row = [function, level, template, spans, logger, error, caught, int(bool(traced))]
            listed.setdefault(file, []).append(row)
    names = dict(sorted({**document["plugins"], **plugins}.items()))
    return {"releases": every, "plugins": names, "calls": listed}


def _stored(document: dict[str, Any]) -> Iterator[tuple[str, Key, set[str]]]:
    known = document["releases"]
    for file, rows in document["calls"].items():
        for function, level, template, spans, logger, error, caught, traced in rows:
            named = "" if logger is None else logger or "*"
            key = (function, level, template, named, error, caught, "1" if traced else "")
            yield file, key, {known[place] for place in places(spans)}


def _spans(having: set[str], every: list[str]) -> str:
    """Return the places of releases in the list of all, as spans."""
    spans: list[list[int]] = []
    for place in (place for place, one in enumerate(every) if one in having):
        if spans and spans[-1][1] == place - 1:
            spans[-1][1] = place
        else:
            spans.append([place, place])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def text_of(document: dict[str, Any]) -> str:
    """Return the text of the file: one line for each call, so that diffs are readable."""

    def written(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    files = []
    for file, rows in document["calls"].items():
        lines = ",\n".join(f" {written(row)}" for row in rows)
        files.append(f"{written(file)}:[\n{lines}\n]")
    heads = [f'"{name}":{written(document[name])}' for name in ("releases", "plugins")]
    calls = ",\n".join(files)
    return "{" + ",\n".join([*heads, f'"calls":{{\n{calls}\n}}']) + "}\n"


if __name__ == "__main__":
    sys.exit(main())
