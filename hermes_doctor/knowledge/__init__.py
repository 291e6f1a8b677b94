"""What is known about each Hermes release: data, made by tools/ from the releases themselves."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent


@cache
def load_knowledge(name: str) -> dict[str, Any]:
    """One file of knowledge, by its path below this folder and without `.json`."""
    import json

    data: dict[str, Any] = json.loads((_HERE / f"{name}.json").read_bytes())
    return data
