"""Read gateway.json, the older form of config.yaml, which still supplies missing settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.system.files import MEGABYTE, Snapshot, read as read_file

NAME = "gateway.json"
_LIMIT = 4 * MEGABYTE


class OldSettings(NamedTuple):
    """The contents of gateway.json, including secrets."""

    snapshot: Snapshot
    values: Mapping[str, Any] | None
    """None if it is not valid JSON."""
    mapping: bool = True
    """Whether its top level is a mapping."""


def read(home: Home) -> OldSettings | None:
    """Read the file; None if there is none."""
    import json

    try:
        data, taken = read_file(home / NAME, _LIMIT)
    except FileNotFoundError:
        return None
    try:
        found = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return OldSettings(taken, None)
    if found and not isinstance(found, dict):
        return OldSettings(taken, None, False)
    return OldSettings(taken, found or {})
