"""Makes hermes_doctor/knowledge/schemas/kanban.json: asks every release for its kanban schema.

    python -m tools.learn_kanban            all releases
    python -m tools.learn_kanban 0.19.0     prints what one release says

A column carries the release it came with, its declaration, and the releases that bring it back
by themselves when it is lost.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools import releases

HERE = Path(__file__).parent
TARGET = HERE.parent / "hermes_doctor" / "knowledge" / "schemas" / "kanban.json"


def ask(version: str) -> dict[str, Any]:
    """What one release says about its kanban database."""
    done = subprocess.run(
        [str(releases.python_of(version)), str(HERE / "kanban_lesson.py")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode:
        raise RuntimeError(f"{version}: {done.stderr.strip()[-500:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def merge(answers: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """One document: every table, column and index with the release it came with."""
    tables: dict[str, Any] = {}
    indexes: dict[str, Any] = {}
    for version, answer in answers.items():
        for table, known in answer["tables"].items():
            columns = tables.setdefault(table, {"since": version, "columns": {}})["columns"]
            for column, facts in known["columns"].items():
                healed = facts.pop("healed")
                entry = columns.setdefault(column, {"since": version, **facts, "healed_by": []})
                if healed:
                    entry["healed_by"].append(version)
        for index, facts in answer["indexes"].items():
            indexes.setdefault(index, {"since": version, **facts})
    return {"releases": list(answers), "tables": tables, "indexes": indexes}


def main() -> None:
    """Learn from one release or from all."""
    if sys.argv[1:]:
        print(json.dumps(ask(sys.argv[1]), indent=1))
        return
    document = merge({version: ask(version) for version in releases.ALL})
    TARGET.write_text(json.dumps(document, indent=1) + "\n")
    print(f"wrote {TARGET.name}: {len(document['tables'])} tables of {len(releases.ALL)} releases")


if __name__ == "__main__":
    main()
