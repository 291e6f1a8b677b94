"""Write hermes_doctor/knowledge/resolution.json: what each release knows about providers.

python -m tools.learn_providers            all releases, about a minute
python -m tools.learn_providers 0.19.0     prints the answers of one release
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools import lessons

TARGET = Path(__file__).parent.parent / "hermes_doctor" / "knowledge" / "resolution.json"
LESSON = Path(__file__).parent / "provider_lesson.py"

Lesson = dict[str, dict[str, Any]]
"""For each topic its entries; a topic that is a list has entries without details."""


def ask(version: str) -> Lesson:
    """Return the answers of one release."""
    said: dict[str, Any] = lessons.ask(version, LESSON)
    return by_entry({"releases": [version], **said})


def by_entry(said: dict[str, Any]) -> Lesson:
    """Return every topic as a mapping."""
    return {
        topic: entries if isinstance(entries, dict) else dict.fromkeys(map(_key, entries), True)
        for topic, entries in said.items()
    }


def _key(entry: Any) -> str:
    return entry if isinstance(entry, str) else json.dumps(entry)


def combine(lessons: dict[str, Lesson]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return each entry's variants by topic, each with its first and its last release."""
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
    """Return the file's text: one line per variant, so that diffs between releases are readable."""
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
