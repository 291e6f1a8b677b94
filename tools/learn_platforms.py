"""Write hermes_doctor/knowledge/enabling.json: which settings start which platform.

    python -m tools.learn_platforms            all releases, about a minute
    python -m tools.learn_platforms 0.19.0     prints the answers of one release

Facts that no release can report (labels, hosts, ports) are in platforms.json, which is written by
hand; tests compare it with the releases' own code.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools import lessons

KNOWLEDGE = Path(__file__).parent.parent / "hermes_doctor" / "knowledge"
TARGET = KNOWLEDGE / "enabling.json"
LESSON = Path(__file__).parent / "platform_lesson.py"

Lesson = dict[str, dict[str, Any]]


def ask(version: str) -> Lesson:
    """Return for each platform of one release what enables and disables it."""
    platforms = json.loads((KNOWLEDGE / "platforms.json").read_bytes())["platforms"]
    question = {name: facts["variables"] for name, facts in platforms.items()}
    lesson: Lesson = lessons.ask(version, LESSON, question)
    return lesson


def combine(lessons: dict[str, Lesson]) -> dict[str, list[dict[str, Any]]]:
    """Return for each platform its variants, each with the releases that have it, oldest first."""
    found: dict[str, list[dict[str, Any]]] = {}
    for version, lesson in lessons.items():
        for name, form in lesson.items():
            forms = found.setdefault(name, [])
            same = [one for one in forms if {**one, "releases": None} == {**form, "releases": None}]
            if same:
                same[0]["releases"].append(version)
            else:
                forms.append({"releases": [version], **form})
    return found


def document(combined: dict[str, list[dict[str, Any]]]) -> str:
    """Return the file's text: one line per variant, so that diffs between releases are readable."""
    parts = []
    for name, forms in sorted(combined.items()):
        lines = ",\n".join("    " + json.dumps(form) for form in forms)
        parts.append(f"  {json.dumps(name)}: [\n{lines}\n  ]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    lessons.learn(ask, lambda said: document(combine(said)), TARGET)
