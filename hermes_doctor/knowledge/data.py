"""Load the JSON files with the facts about each Hermes release."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
NEWEST = (0, 19, 0)
"""The newest release that the files describe; tools/add_release.py writes these lines."""
NEWEST_CONFIG, NEWEST_SCHEMA = 33, 22
"""The version that it writes into config.yaml, and the schema version of its state.db."""


@cache
def load_knowledge(name: str) -> dict[str, Any]:
    """Load one file by its path below this folder, without `.json`."""
    import json

    data: dict[str, Any] = json.loads((_HERE / f"{name}.json").read_bytes())
    return data
