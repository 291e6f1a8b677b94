"""Add a release of Hermes to what hermes-doctor knows: hermes_doctor/hermes/knowledge/.

    python -m tools.add_release 0.20.5                    a release on the package index
    python -m tools.add_release --checkout DIR            a checkout with its environment in .venv
    python -m tools.add_release --check 0.19.0            compares its answers with the files

The release answers in a temporary home, without network. Files of older releases are made from
what is known about them, so only the release that is added has to be there. Running it again for a
known release replaces its answers. docs/releases.md says what else a new release needs.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from hermes_doctor.hermes.knowledge import atlas, merging, parse_release
from tools import lessons, logging_calls, releases

KNOWLEDGE = Path(__file__).parents[1] / "hermes_doctor" / "hermes" / "knowledge"
SCHEMAS = tuple(f"schemas/{Path(name).stem}" for name in atlas.DATABASES)
WIDTH = 100


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Add a release to the knowledge.")
    parser.add_argument("version", nargs="?", help="a release on the package index")
    parser.add_argument("--checkout", type=Path, help="folder of a checkout with a .venv")
    parser.add_argument("--check", action="store_true", help="only compare with the files")
    given = parser.parse_args()
    if given.checkout:
        version = releases.version_of_checkout(given.checkout)
        python = releases.python_of_checkout(given.checkout)
    elif given.version:
        version = given.version
        if not (releases.LOCKS / f"{version}.txt").exists():
            releases.write_lock(version)
        python = releases.python_of(version)
    else:
        parser.error("name a release or --checkout")
    answers = lessons.learn(version, python=python)
    for name in (*merging.NAMES, *SCHEMAS):
        changed = add(name, version, answers.get(name), write=not given.check)
        if changed:
            print(f"{name}.json {'differs' if given.check else 'written'}")
    source = given.checkout or logging_calls.packages(version)
    if logging_calls.update({version: source}, write=not given.check):
        print(f"logging_calls.json {'differs' if given.check else 'written'}")
    if not given.check:
        write_newest()


def add(name: str, version: str, answer: Any, *, write: bool) -> bool:
    """Put a release's answer into one file; return whether that changes it."""
    path = KNOWLEDGE / f"{name}.json"
    before = path.read_text()
    document = json.loads(before)
    if answer is None and version not in document.get("releases", {}):
        return False  # this release does not have the database
    after = text_of(name, merging.add(name, document, known(), version, answer))
    if write and after != before:
        path.write_text(after)
    return after != before


def known() -> list[str]:
    """Return the releases that the files describe."""
    return list(json.loads((KNOWLEDGE / "services.json").read_bytes()))


def text_of(name: str, document: dict[str, Any]) -> str:
    """Return the text of a file: one line per variant, so that diffs are readable."""
    if name == "services":
        return json.dumps(document, indent=1) + "\n"
    if name.startswith("schemas/"):
        kept = {key: value for key, value in document.items() if key != "views" or value}
        return written(kept) + "\n"
    if name in ("cron", "breaks"):
        return _block((f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in document.items()), "")
    parts = []
    for key, entries in document.items():
        if isinstance(entries, list):
            lines = ",\n".join("    " + json.dumps(form) for form in entries)
            parts.append(f"  {json.dumps(key)}: [\n{lines}\n  ]")
            continue
        inner = (
            f"    {json.dumps(k)}: "
            + (f"[{', '.join(map(json.dumps, v))}]" if isinstance(v, list) else json.dumps(v))
            for k, v in entries.items()
        )
        parts.append(f"  {json.dumps(key)}: " + _block(inner, "  ").rstrip("\n"))
    return _block(parts, "")


def _block(lines: Any, pad: str) -> str:
    return "{\n" + ",\n".join(lines) + f"\n{pad}}}\n"


def written(value: Any, indent: int = 0) -> str:
    """Return JSON in which what fits into a line stays on one."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + indent <= WIDTH or not isinstance(value, dict | list):
        return flat
    pad = " " * (indent + 1)
    if isinstance(value, dict):
        inner = [f"{pad}{json.dumps(k)}: {written(v, indent + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(inner) + "\n" + " " * indent + "}"
    inner = [pad + written(one, indent + 1) for one in value]
    return "[\n" + ",\n".join(inner) + "\n" + " " * indent + "]"


def write_newest() -> None:
    """Write the numbers of the newest release into hermes/knowledge/releases.py."""
    newest = max(known(), key=parse_release)
    config = json.loads((KNOWLEDGE / "resolution.json").read_bytes())["config_version"]
    schema = json.loads((KNOWLEDGE / "schemas" / "state.json").read_bytes())["releases"]
    path = KNOWLEDGE / "data.py"
    text = path.read_text()
    release = ", ".join(map(str, parse_release(newest)))
    text = re.sub(r"^NEWEST = .*$", f"NEWEST = ({release})", text, flags=re.MULTILINE)
    numbers = f"{max(map(int, config))}, {schema[newest]}"
    text = re.sub(r"^(NEWEST_CONFIG, NEWEST_SCHEMA) = .*$", rf"\1 = {numbers}", text, flags=re.M)
    path.write_text(text)


if __name__ == "__main__":
    main()
