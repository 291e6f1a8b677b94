"""Write hermes_doctor/knowledge/breaks.json: which platforms are broken in which releases.

python -m tools.learn_breaks            all releases
python -m tools.learn_breaks 0.19.0     prints the answers of one release
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools import learn_platforms, lessons

TARGET = learn_platforms.KNOWLEDGE / "breaks.json"
LESSON = Path(__file__).parent / "break_lesson.py"
Said = dict[str, dict[str, str]]


def ask(version: str) -> Said:
    """Return what is broken in one release."""
    said: Said = lessons.ask(version, LESSON)
    return said


def document(said: dict[str, Said]) -> str:
    """Return by platform what is missing, in which releases, and which release repairs it."""
    found: dict[str, list[dict[str, Any]]] = {}
    for version, broken in said.items():
        for name, fault in broken.items():
            known = found.setdefault(name, [])
            same: dict[str, Any] | None = next(
                (one for one in known if fault.items() <= one.items()), None
            )
            if same is None:
                same = {**fault, "releases": []}
                known.append(same)
            same["releases"].append(version)
    order = list(said)
    for name, faults in found.items():
        for one in faults:
            after = order[order.index(one["releases"][-1]) + 1 :]
            one["cured_by"] = next((v for v in after if name not in said[v]), None)
    lines = [f"  {json.dumps(name)}: {json.dumps(faults)}" for name, faults in found.items()]
    return "{\n" + ",\n".join(sorted(lines)) + "\n}\n"


if __name__ == "__main__":
    lessons.learn(ask, document, TARGET)
