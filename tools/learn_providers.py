"""Makes hermes_doctor/knowledge/resolution.json: asks every release what it knows of providers.

python -m tools.learn_providers            all releases, about a minute
python -m tools.learn_providers 0.19.0     prints what one release says
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools import lessons

TARGET = Path(__file__).parent.parent / "hermes_doctor" / "knowledge" / "resolution.json"
LESSON = Path(__file__).parent / "provider_lesson.py"

Lesson = dict[str, dict[str, Any]]
"""For each topic its entries; a topic that is a list has the entries without more about them."""


def ask(version: str) -> Lesson:
    """What one release says."""
    said: dict[str, Any] = lessons.ask(version, LESSON)
    return by_entry({"releases": [version], **said})


def by_entry(said: dict[str, Any]) -> Lesson:
    """Every topic as a mapping."""
    return {
        topic: entries if isinstance(entries, dict) else dict.fromkeys(map(_key, entries), True)
        for topic, entries in said.items()
    }


def _key(entry: Any) -> str:
    return entry if isinstance(entry, str) else json.dumps(entry)


def combine(lessons: dict[str, Lesson]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """For each entry of each topic its forms, each with the first and the last release of it."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    before: str | None = None
    for version, lesson in lessons.items():
        for topic, entries in lesson.items():
            for name, form in entries.items():
                forms = found.setdefault(topic, {}).setdefault(name, [])
                if forms and forms[-1]["is"] == form and forms[-1]["to"] == before:
                    forms[-1]["to"] = version
                else:
                    forms.append({"from": version, "to": version, "is": form})
        before = version
    return found


def document(combined: dict[str, dict[str, list[dict[str, Any]]]]) -> str:
    """The file: a line for each form, so that a diff between releases can be read."""
    topics = []
    for topic, entries in combined.items():
        lines = ",\n".join(
            f"    {json.dumps(name)}: [{', '.join(json.dumps(form) for form in forms)}]"
            for name, forms in sorted(entries.items())
        )
        topics.append(f"  {json.dumps(topic)}: {{\n{lines}\n  }}")
    return "{\n" + ",\n".join(topics) + "\n}\n"


if __name__ == "__main__":
    lessons.learn(ask, lambda said: document(combine(said)), TARGET)
