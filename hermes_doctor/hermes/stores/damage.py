"""Examine the bytes of a store and find its first flaw, also in single fields and in schedules.

Only schedules count from which Hermes certainly cannot determine a next run. The grammar of cron
expressions is that of the library which Hermes uses.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Container, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.hermes.stores.catalogue import ANY, LIST, Store

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
        if not isinstance(value, dict):
            return ORIGIN if value else None
        named = isinstance(value.get("platform"), str) and "chat_id" in value
        return None if named or not value else LEFT
    if field not in entry:
        return LEFT
    if kind == _GIVEN or _is_time(value):
        return None
    return LEFT if isinstance(value, str) else FIELD


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
    said = next((str(other) for other in others if _is_time(other)), None)
    try:
        begun = datetime.strptime(str(entry.get("session_id"))[:15], "%Y%m%d_%H%M%S")
    except ValueError:
        return said
    return said or begun.isoformat()


def generated_id(entry: dict[str, Any], number: int = 0) -> str:
    """Return an id as Hermes makes them, always the same for the same entry."""
    from hashlib import sha256

    return sha256((json.dumps(entry) + str(number or "")).encode()).hexdigest()[:12]


BOM, PADDING, TORN, TAIL, CONTROL = "bom", "padding", "torn", "tail", "control"
EMPTY, BINARY, NULL, BARE, TEXT, NUMBER = "empty", "binary", "null", "list", "text", "number"
WITHOUT, HOLDER, ENTRY, TWICE, DEEP = "without", "holder", "entry", "twice", "deep"
OF_ENTRIES = {
    ENTRY: "are not objects",
    FIELD: "have a field of the wrong type",
    ORIGIN: "have an invalid origin",
    LEFT: "lack a field that Hermes needs",
}
"""The flaws of single entries, the most costly first."""
_BLANKS = b" \t\r\n"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class StoreFlaw(NamedTuple):
    """One thing that is wrong with a file."""

    kind: str
    what: str
    """For the user; contains none of the file's own text."""
    sound: int = 0
    """The number of entries without a flaw."""
    behind: int = 0
    """How many of these come after the first at which some releases stop."""


class ExaminedStore(NamedTuple):
    """The values of a store, and its flaw."""

    values: Any
    """None if nothing can be read without a repair."""
    damage: StoreFlaw | None


def _flawed(kind: str, what: str, values: Any = None) -> ExaminedStore:
    return ExaminedStore(values, StoreFlaw(kind, what))


def examine_bytes(data: bytes, store: Store, harmless: Container[str] = ()) -> ExaminedStore:
    """Parse these bytes as Hermes does, and return the first flaw that would affect it.

    The kinds in `harmless` are not flaws for the given release.
    """
    if not data.strip(_BLANKS):
        return _flawed(EMPTY, "empty")
    if not data.strip(b"\0" + _BLANKS):
        return _flawed(EMPTY, f"contains only {len(data):,} NUL bytes")
    marked = data.startswith(codecs.BOM_UTF8)
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        kind = (
            "encoded as UTF-16" if data.startswith(_UTF16) else f"byte {error.start:,} is not UTF-8"
        )
        return _flawed(BINARY, kind)
    examined = _parsed(text)
    if examined.damage is None:
        flaws = (flaw for flaw in _shape(examined.values, store) if flaw.kind not in harmless)
        examined = ExaminedStore(examined.values, next(flaws, None))
    if examined.damage is None and marked:
        return _flawed(BOM, "its first three bytes are a byte order mark", examined.values)
    return examined


def _parsed(text: str) -> ExaminedStore:
    try:
        return _decoded(text)
    except RecursionError:
        return _flawed(DEEP, "it is nested too deeply")
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        return _flawed(TORN, f"{place}: not valid JSON from here")
    except ValueError:
        return _flawed(DEEP, "it contains a number that is too long")


def _decoded(text: str) -> ExaminedStore:
    """Parse a text and what surrounds it; JSONDecodeError if nothing can be read."""
    try:
        return ExaminedStore(json.loads(text), None)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
    try:
        values = json.loads(text, strict=False)
        return _flawed(CONTROL, f"{place}: a control character inside a text", values)
    except json.JSONDecodeError:
        pass
    except (ValueError, RecursionError):  # Hermes, whose parser is strict, does not get that far
        return _flawed(TORN, f"{place}: not valid JSON from here")
    bare = text.rstrip("\0")
    if bare != text:
        inner = _parsed(bare)
        count = len(text) - len(bare)
        if inner.damage is None:
            return _flawed(PADDING, f"{count:,} NUL bytes after the end", inner.values)
        return _flawed(TORN, f"cut off, then {count:,} NUL bytes")
    values, end = json.JSONDecoder(strict=False).raw_decode(text.lstrip())
    return _flawed(TAIL, f"{len(text.lstrip()) - end:,} characters after the end", values)


def _shape(values: Any, store: Store) -> Iterator[StoreFlaw]:
    """Yield what is wrong with the structure of valid JSON, the most costly first."""
    if not has_type(values, store.top):
        yield _top(values, store)
        return
    odd = [path[0] for path in store.entries if path and _odd_holder(values, path[0], store)]
    held = not store.one_of or any(_holds(values, key, store) for key in store.one_of)
    if values and not held and (not odd or len(store.entries) > 1):
        yield StoreFlaw(WITHOUT, f"{' or '.join(store.one_of)} is missing")
    elif odd:
        kind = "a list" if store.inside == LIST else "an object"
        yield StoreFlaw(HOLDER, f"{odd[0]} is not {kind}")
    else:
        yield from _of_entries(raw_entries(values, store), store)


def _top(values: Any, store: Store) -> StoreFlaw:
    wanted = "a list" if store.top == LIST else "an object"
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    what = f"the file contains {kinds.get(type(values), 'a number')}, not {wanted}"
    if values is None:
        return StoreFlaw(NULL, "contains only `null`")
    if isinstance(values, dict | list):
        return StoreFlaw(BARE, what)
    return StoreFlaw(TEXT if isinstance(values, str) else NUMBER, what)


def _of_entries(entries: list[Any], store: Store) -> Iterator[StoreFlaw]:
    """Yield the flaws of single entries."""
    faults = [
        {*field_faults(entry, store).values()} if has_type(entry, store.entry) else {ENTRY}
        for entry in entries
    ]
    sound = sum(not fault for fault in faults)
    stops = next((number for number, fault in enumerate(faults) if fault - {LEFT}), len(faults))
    behind = sum(not fault for fault in faults[stops:])
    for kind, words in OF_ENTRIES.items():
        count = sum(kind in fault for fault in faults)
        if count:
            yield StoreFlaw(kind, f"{count} of its entries {words}", sound, behind)
    count = len(duplicate_ids(entries, store))
    if count:
        what = f"{count} of its entries have the id of another entry"
        yield StoreFlaw(TWICE, what, sound - count)


def duplicate_ids(entries: list[Any], store: Store) -> list[int]:
    """Return the positions of enabled entries that have the id of an earlier one."""
    if "id" not in store.needs:
        return []
    ids = [str(entry.get("id")) if isinstance(entry, dict) else "" for entry in entries]
    first = {id: number for number, id in reversed([*enumerate(ids)])}
    return [
        number
        for number, id in enumerate(ids)
        if id and first[id] < number and entries[number].get("enabled", True)
    ]


def _holds(values: Any, key: str, store: Store) -> bool:
    return has_type(values.get(key), store.inside)


def _odd_holder(values: Any, key: str, store: Store) -> bool:
    """Tell whether there is something else where the entries should be."""
    absent = values.get(key) is None and (key not in values or len(store.entries) > 1)
    return not absent and not _holds(values, key, store)


def has_type(value: object, kind: str) -> bool:
    """Tell whether a value is of the type that a description names."""
    return kind == ANY or isinstance(value, list if kind == LIST else dict)


def raw_entries(values: Any, store: Store) -> list[Any]:
    """Return the values of all entries of any type; notes that are objects are left out."""
    found: list[Any] = []
    for path in store.entries:
        holder = container_at(values, path)
        if isinstance(holder, dict):
            notes = {key for key, one in holder.items() if key[:1] == "_" and isinstance(one, dict)}
            found += [one for key, one in holder.items() if key not in notes]
        else:
            found += holder or ()
    return found


def container_at(values: Any, path: tuple[str, ...]) -> dict[str, Any] | list[Any] | None:
    """Return the container at a path of the document."""
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values if isinstance(values, dict | list) else None


_HIGHEST = (59, 23, 31, 12, 7)
"""The maximum of minutes, hours, days, months and days of the week."""
_ANYWHERE = frozenset("hrlw")
_MONTHS = frozenset(
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
)
_DAYS = frozenset(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])
_WORDS = (_ANYWHERE, _ANYWHERE, _ANYWHERE, _ANYWHERE | _MONTHS, _ANYWHERE | _DAYS, *[_ANYWHERE] * 2)
_NICKNAMES = frozenset(
    ["@midnight", "@hourly", "@daily", "@weekly", "@monthly", "@yearly", "@annually"]
)
_CRON_PART = pattern(r"[\da-z*/,#?()-]+")
_LETTERS = pattern(r"[a-z]+")
_NUMBERS = pattern(r"(?<![/#(\d-])(\d{1,9})(?:-(\d{1,9}))?")


def has_no_next_run(schedule: dict[str, Any]) -> bool:
    """Tell whether Hermes fails to determine the next run of a schedule."""
    kind = schedule.get("kind")
    if kind == "interval":
        return not _is_possible_interval(schedule.get("minutes"))
    return kind == "cron" and not _is_possible_expression(schedule.get("expr"))


def _is_possible_interval(minutes: Any) -> bool:
    try:
        return bool(datetime.now(UTC) + timedelta(minutes=minutes))
    except (TypeError, ValueError, OverflowError):
        return False


def _is_possible_expression(expression: object) -> bool:
    if not isinstance(expression, str):
        return False
    parts = expression.lower().split()
    if len(parts) == 1 and parts[0] in _NICKNAMES:
        return True
    return 5 <= len(parts) <= 7 and all(
        _CRON_PART.fullmatch(part)
        and _WORDS[number].issuperset(_LETTERS.findall(part))
        and (number >= len(_HIGHEST) or _numbers_fit(part, _HIGHEST[number]))
        for number, part in enumerate(parts)
    )


def _numbers_fit(part: str, highest: int) -> bool:
    found = (number for pair in _NUMBERS.findall(part) for number in pair if number)
    return all(int(number) <= highest for number in found)
