"""Read the journal of a unit: the gateway's output, and systemd's messages about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hermes_doctor.logs import output
from hermes_doctor.logs.entry import LogEntry, Unread
from hermes_doctor.logs.formats import LONG, LogWindow
from hermes_doctor.logs.rotated import ReportUnread
from hermes_doctor.model import CouldNotLook

if TYPE_CHECKING:
    from hermes_doctor.supervisors.unit import Unit

SOURCE = "journal"
MOST = 2000
"""The number of records that a quick check asks for."""
_PATIENCE = 5.0
_RECORD = 6 * 1024
"""The usual maximum size of a record in bytes."""
_LEVELS = ("CRITICAL", "CRITICAL", "CRITICAL", "ERROR", "WARNING", "INFO", "INFO", "DEBUG")
"""By syslog priority; systemd reports an exit as a notice."""
_FIELDS = "MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,_TRANSPORT"
_BLIND = ("not seeing messages from other users", "insufficient permissions", "Permission denied")
_NOTHING = "No journal files were found"


def entries(
    unit: Unit, span: LogWindow, max_bytes: int | None, report_unread: ReportUnread
) -> Iterator[LogEntry]:
    """Yield what was written since then; without `max_bytes`, more records."""
    from hermes_doctor.system import commands

    count = 50 * MOST if max_bytes is None else MOST
    source = f"{SOURCE} of {unit.name}"
    command = ["journalctl", "--no-pager", "--output=json", f"--output-fields={_FIELDS}"]
    limits = [f"--since=@{max(0, span.since):.0f}", f"--lines={count}"]
    if span.until < 1e11:
        limits.append(f"--until=@{span.until + 1:.0f}")
    try:
        answer = commands.ask(
            *(*command, *limits, *_matches(unit)), limit=_PATIENCE, max_bytes=count * _RECORD
        )
    except CouldNotLook as why:
        report_unread(Unread(source, str(why)))
        return
    found = [record for record in map(_record, answer.out.split("\n")) if record]
    if why_not := _silence(answer.code, answer.err, bool(found)):
        report_unread(Unread(source, why_not))
    if len(found) >= count:
        report_unread(Unread(source, f"only the last {count} records were read", partly=True))
    yield from output.entries(
        (_line(record, number) for number, record in enumerate(found)), span, SOURCE, SOURCE
    )


def _matches(unit: Unit) -> list[str]:
    """Return the filter for a unit: what its processes wrote and what systemd wrote about it.

    `--user-unit` would only match units of the calling user.
    """
    if unit.manager is None:
        return [f"--unit={unit.name}"]
    whose = f"_UID={unit.manager}"
    return [
        *(f"_SYSTEMD_USER_UNIT={unit.name}", whose, "+"),
        *(f"USER_UNIT={unit.name}", whose),
    ]


def _silence(code: int, said: str, found: bool) -> str:
    """Return why there may be more records than were shown."""
    if any(word in said for word in _BLIND) and not found:
        return "its records may not be read by this user"
    if _NOTHING in said:
        return "the journal keeps no records on this machine"
    return f"journalctl failed with {code}" if code else ""


def _record(text: str) -> dict[str, Any] | None:
    import json

    try:
        record = json.loads(text)
        int(record["__REALTIME_TIMESTAMP"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _line(record: dict[str, Any], number: int) -> output.OutputLine:
    said = record.get("MESSAGE")
    if isinstance(said, list):  # bytes that are not text
        said = bytes(n for n in said[:LONG] if isinstance(n, int) and 0 <= n < 256)
        said = said.decode("utf-8", "replace")
    priority = record.get("PRIORITY")
    known = isinstance(priority, str) and priority.isascii() and priority.isdigit()
    level = _LEVELS[min(int(priority), 7)] if known and priority else output.PLAIN
    other = record.get("_TRANSPORT") != "stdout"
    name = record.get("SYSLOG_IDENTIFIER")
    return output.OutputLine(
        int(record["__REALTIME_TIMESTAMP"]) / 1e6,
        number,
        said[:LONG] if isinstance(said, str) else "",
        level,
        name if other and isinstance(name, str) else "",
    )
