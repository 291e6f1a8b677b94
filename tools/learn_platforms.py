"""Makes hermes_doctor/knowledge/enabling.json: asks every release what starts which platform.

    python -m tools.learn_platforms            all releases, about a minute
    python -m tools.learn_platforms 0.19.0     prints what one release says

What no release can be asked (labels, hosts, ports) stands in platforms.json and is written by
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
    """What one release says: for each of its platforms, what switches it on and off."""
    platforms = json.loads((KNOWLEDGE / "platforms.json").read_bytes())["platforms"]
    question = {name: facts["variables"] for name, facts in platforms.items()}
    lesson: Lesson = lessons.ask(version, LESSON, question)
    return lesson


def combine(lessons: dict[str, Lesson]) -> dict[str, list[dict[str, Any]]]:
    """For each platform its forms, each with the releases that have it so, oldest first."""
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
    """The file: a line for each form, so that a diff between releases can be read."""
    parts = []
    for name, forms in sorted(combined.items()):
        lines = ",\n".join("    " + json.dumps(form) for form in forms)
        parts.append(f"  {json.dumps(name)}: [\n{lines}\n  ]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    lessons.learn(ask, lambda said: document(combine(said)), TARGET)
