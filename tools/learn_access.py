"""Write hermes_doctor/knowledge/access.json: where each release takes platform settings from.

python -m tools.learn_access            all releases, some minutes
python -m tools.learn_access 0.19.0     prints the answers of one release

A platform whose library is missing does not start, so the answers depend on the packages that are
installed. The lock files pin them: those of the `messaging` extra, as operators install it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools import learn_platforms, lessons

TARGET = learn_platforms.KNOWLEDGE / "access.json"
LESSON = Path(__file__).parent / "access_lesson.py"


def ask(version: str) -> dict[str, dict[str, Any]]:
    """Return where one release takes the settings of its platforms from."""
    platforms = json.loads((learn_platforms.KNOWLEDGE / "platforms.json").read_bytes())
    question = {name: facts["variables"] for name, facts in platforms["platforms"].items()}
    said: dict[str, dict[str, Any]] = lessons.ask(version, LESSON, question)
    return said


if __name__ == "__main__":
    lessons.learn(ask, lambda said: learn_platforms.document(learn_platforms.combine(said)), TARGET)
