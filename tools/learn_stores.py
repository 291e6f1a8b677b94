"""Write hermes_doctor/knowledge/loaders.json: how each release handles damaged JSON files.

python -m tools.learn_stores            all releases, a minute
python -m tools.learn_stores 0.19.0     prints the answers of one release
"""

from __future__ import annotations

import json
from pathlib import Path

from tools import learn_platforms, lessons

TARGET = learn_platforms.KNOWLEDGE / "loaders.json"
LESSON = Path(__file__).parent / "store_lesson.py"
Said = dict[str, dict[str, str]]


def ask(version: str) -> Said:
    """Return for each store and flaw what one release loads."""
    said: dict[str, dict[str, str] | str] = lessons.ask(version, LESSON)
    return {kind: told for kind, told in said.items() if isinstance(told, dict)}


def document(said: dict[str, Said]) -> str:
    """Return by store and flaw the outcome, with the first release that has it."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for version, stores in said.items():
        for kind, flaws in stores.items():
            for flaw, outcome in flaws.items():
                since = found.setdefault(kind, {}).setdefault(flaw, {})
                if [outcome] != list(since.values())[-1:]:
                    since[version] = outcome
    lines = []
    for kind, forms in sorted(found.items()):
        inner = ",\n".join(
            f"    {json.dumps(flaw)}: {json.dumps(since)}" for flaw, since in forms.items()
        )
        lines.append(f"  {json.dumps(kind)}: {{\n{inner}\n  }}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    lessons.learn(ask, document, TARGET)
