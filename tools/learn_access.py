"""Makes hermes_doctor/knowledge/access.json: asks every release what its platforms go by.

python -m tools.learn_access            all releases, some minutes
python -m tools.learn_access 0.19.0     prints what one release says

A platform whose library is missing does not start, so the answers depend on the packages that are
installed. The locks of the releases pin them: those of the `messaging` extra, as operators have.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools import learn_platforms, lessons

TARGET = learn_platforms.KNOWLEDGE / "access.json"
LESSON = Path(__file__).parent / "access_lesson.py"


def ask(version: str) -> dict[str, dict[str, Any]]:
    """What one release says: for each of its platforms, where its settings come from."""
    platforms = json.loads((learn_platforms.KNOWLEDGE / "platforms.json").read_bytes())
    question = {name: facts["variables"] for name, facts in platforms["platforms"].items()}
    said: dict[str, dict[str, Any]] = lessons.ask(version, LESSON, question)
    return said


if __name__ == "__main__":
    lessons.learn(ask, lambda said: learn_platforms.document(learn_platforms.combine(said)), TARGET)
