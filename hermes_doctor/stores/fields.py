"""Find and repair fields because of which Hermes skips an entry, or all entries."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hermes_doctor.stores.schedules import has_no_next_run

if TYPE_CHECKING:
    from hermes_doctor.stores.catalogue import Store

FIELD, ORIGIN, LEFT = "field", "origin", "left"
"""The kinds of faults.

FIELD makes some releases stop reading, ORIGIN does the same with the origin of a chat, and LEFT
costs every release just this entry.
"""
_SCHEDULE, _TIME, _NAME = "schedule", "time", "name"
_GIVEN, _MOMENT, _SOURCE = "given", "moment", "source"


def field_faults(entry: Any, store: Store) -> dict[str, str]:
    """Return the invalid fields and the kind of each fault; disabled entries are not read."""
    if not store.needs or not isinstance(entry, dict) or not entry.get("enabled", True):
        return {}
    judged = {field: _fault(entry, field, kind) for field, kind in store.needs.items()}
    return {field: fault for field, fault in judged.items() if fault}


def _fault(entry: dict[str, Any], field: str, kind: str) -> str | None:
    value = entry.get(field)
    if kind == _NAME:
        return None if value else FIELD
    if kind == _SCHEDULE:
        return None if field not in entry or _planned(entry, value) else FIELD
    if kind == _TIME:
        return None if not value or _is_time(value) else FIELD
    if kind == _SOURCE:
        return _source(value)
    if field not in entry:
        return LEFT
    if kind == _GIVEN or _is_time(value):
        return None
    return LEFT if isinstance(value, str) else FIELD


def _source(value: object) -> str | None:
    if not isinstance(value, dict):
        return ORIGIN if value else None
    named = isinstance(value.get("platform"), str) and "chat_id" in value
    return None if named or not value else LEFT


def _planned(entry: dict[str, Any], schedule: object) -> bool:
    """Tell whether a schedule gives the next time, or does not have to yet."""
    return isinstance(schedule, dict) and (not has_no_next_run(schedule) or _later(entry))


def _later(entry: dict[str, Any]) -> bool:
    try:
        at = datetime.fromisoformat(entry.get("next_run_at") or "")
        return at.astimezone() > datetime.now(UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return False


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(datetime.fromisoformat(value))
    except ValueError:
        return False


def repair_fields(entry: dict[str, Any], key: str, store: Store) -> bool:
    """Repair the fields of an entry in place; False if that is impossible."""
    mended = [_mended(entry, key, field, store) for field in field_faults(entry, store)]
    return all(mended)


def _mended(entry: dict[str, Any], key: str, field: str, store: Store) -> bool:
    kind = store.needs[field]
    if kind in (_TIME, _SOURCE):
        entry[field] = None
    elif kind == _NAME:
        entry[field] = entry.pop("job_id", None) or generated_id(entry)
    elif kind == _SCHEDULE and isinstance(entry[field], dict):
        entry |= {"enabled": False, "state": "paused"}
    elif kind == _SCHEDULE:
        entry[field], entry["next_run_at"] = {"display": str(entry[field])}, None
    elif kind == _MOMENT:
        entry[field] = _other_moment(entry, store)
        return bool(entry[field])
    elif field == "session_key":
        entry[field] = key
    else:
        return False
    return True


def _other_moment(entry: dict[str, Any], store: Store) -> str | None:
    """Return another time of the entry, or the one in the name of its conversation."""
    others = [entry.get(one) for one, kind in store.needs.items() if kind == _MOMENT]
    said = next((str(one) for one in others if _is_time(one)), None)
    try:
        begun = datetime.strptime(str(entry.get("session_id"))[:15], "%Y%m%d_%H%M%S")
    except ValueError:
        return said
    return said or begun.isoformat()


def generated_id(entry: dict[str, Any], number: int = 0) -> str:
    """Return an id as Hermes makes them, always the same for the same entry."""
    import json
    from hashlib import sha256

    return sha256((json.dumps(entry) + str(number or "")).encode()).hexdigest()[:12]
