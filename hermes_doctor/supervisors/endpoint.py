"""Where the command `docker` finds its engine: on this machine, or on another one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import MEGABYTE, read, user_home

UNKNOWN = "unknown"


def address() -> str:
    """What it would talk to: a variable says so, or a context; empty for the usual socket."""
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
    """A small file of Docker's; an empty one where it is none."""
    import json

    try:
        found = json.loads(read(path, MEGABYTE)[0])
    except (FileNotFoundError, NotADirectoryError, CouldNotLook, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
