"""Write hermes_doctor/knowledge/cron.json: where each release can deliver results of jobs.

python -m tools.learn_cron            all releases
python -m tools.learn_cron 0.19.0     prints the answers of one release
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools import learn_platforms, lessons

TARGET = learn_platforms.KNOWLEDGE / "cron.json"
LESSON = Path(__file__).parent / "cron_lesson.py"


def ask(version: str) -> dict[str, Any]:
    """Return the answers of one release."""
    said: dict[str, Any] = lessons.ask(version, LESSON)
    return said


def document(said: dict[str, dict[str, Any]]) -> str:
    """Return by platform and by word its meaning and the first release that has it."""
    found: dict[str, dict[str, list[str] | None]] = {}
    for version, told in said.items():
        every = {**told["platforms"], **{word: ["*"] for word in told["words"]}}
        for name in sorted({*found, *every}):
            since = found.setdefault(name, {})
            now = every.get(name)
            if now != next(reversed(since.values()), None):
                since[version] = now
    lines = [f"  {json.dumps(name)}: {json.dumps(since)}" for name, since in found.items()]
    return "{\n" + ",\n".join(sorted(lines)) + "\n}\n"


if __name__ == "__main__":
    lessons.learn(ask, document, TARGET)
