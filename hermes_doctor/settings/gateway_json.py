"""gateway.json, where older releases kept what config.yaml holds today; it still fills gaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.system.files import MEGABYTE, Snapshot, read as read_file

NAME = "gateway.json"
_LIMIT = 4 * MEGABYTE


class OldSettings(NamedTuple):
    """What is in it. Holds secrets."""

    snapshot: Snapshot
    values: Mapping[str, Any] | None
    """None when it is no JSON."""
    mapping: bool = True
    """Whether it is a mapping at its top."""


def read(home: Home) -> OldSettings | None:
    """The file, or None when there is none."""
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
