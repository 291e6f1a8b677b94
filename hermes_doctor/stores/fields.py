"""The fields of an entry over which Hermes stumbles, and with them over all other entries."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes_doctor.stores.described import Store

SCHEDULE, TIME, TEXT, NAME = "schedule", "time", "text", "name"


def wrong(entry: Any, store: Store) -> list[str]:
    """The fields of an entry that are not what they must be; what is switched off is not read."""
    if not store.needs or not isinstance(entry, dict) or not entry.get("enabled", True):
        return []
    return [field for field, kind in store.needs.items() if not _is(entry, field, kind)]


def _is(entry: dict[str, Any], field: str, kind: str) -> bool:
    value = entry.get(field)
    if kind == NAME:
        return bool(value)
    if kind == SCHEDULE:
        return isinstance(value, dict) or field not in entry
    if kind == TEXT:
        return isinstance(value, str) or field not in entry
    return not value or (isinstance(value, str) and _is_time(value))


def _is_time(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def mended_fields(entry: dict[str, Any], store: Store) -> bool:
    """Put the fields of an entry right in place; False when that cannot be."""
    for field in wrong(entry, store):
        kind = store.needs[field]
        if kind == TIME:
            entry[field] = None
        elif kind == NAME:
            entry[field] = entry.pop("job_id", None) or _made_up(entry)
        elif kind == SCHEDULE:
            entry[field], entry["next_run_at"] = {"display": str(entry[field])}, None
        else:
            others = [entry.get(one) for one, kind in store.needs.items() if kind == TEXT]
            said = next((one for one in others if isinstance(one, str)), None)
            if said is None:
                return False
            entry[field] = said
    return True


def _made_up(entry: dict[str, Any]) -> str:
    """A name as Hermes makes them, the same whenever it is asked for."""
    import json
    from hashlib import sha256

    return sha256(json.dumps(entry).encode()).hexdigest()[:12]
