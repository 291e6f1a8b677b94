"""Find the address of the engine that the command `docker` uses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import MEGABYTE, read, user_home

UNKNOWN = "unknown"


def address() -> str:
    """Return the engine's address from DOCKER_HOST or the context; empty for the default socket."""
    if host := os.environ.get("DOCKER_HOST"):
        return host if "://" in host else f"unix://{host}" if host.startswith("/") else UNKNOWN
    own = os.environ.get("DOCKER_CONFIG")
    folder = Path(own) if own else user_home() / ".docker"
    name = os.environ.get("DOCKER_CONTEXT") or _document(folder / "config.json").get(
        "currentContext"
    )
    if not name or name == "default":
        return ""
    import hashlib

    place = folder / "contexts" / "meta" / hashlib.sha256(str(name).encode()).hexdigest()
    try:
        return str(_document(place / "meta.json")["Endpoints"]["docker"]["Host"])
    except (LookupError, TypeError):
        return UNKNOWN


def _document(path: Path) -> dict[str, Any]:
    """Read a small JSON file of Docker; empty if it is missing or invalid."""
    import json

    try:
        found = json.loads(read(path, MEGABYTE)[0])
    except (FileNotFoundError, NotADirectoryError, CouldNotLook, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
