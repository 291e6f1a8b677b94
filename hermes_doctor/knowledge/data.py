"""What is known about each Hermes release: data, made by tools/ from the releases themselves."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
NEWEST = (0, 19, 0)
"""The newest release that the knowledge is about."""
NEWEST_CONFIG, NEWEST_SCHEMA = 33, 22
"""The version that it writes into config.yaml, and the one of its state.db."""


@cache
def load_knowledge(name: str) -> dict[str, Any]:
    """One file of knowledge, by its path below this folder and without `.json`."""
    import json

    data: dict[str, Any] = json.loads((_HERE / f"{name}.json").read_bytes())
    return data
