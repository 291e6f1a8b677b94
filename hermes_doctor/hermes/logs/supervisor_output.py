"""Ask the journal or the container engine of a unit for what its gateway has printed.

The journal also has systemd's messages about the unit.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from hermes_doctor.core.lazy import pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.hermes.logs import output
from hermes_doctor.hermes.logs.entry import LONG, LogEntry, LogWindow, Unread
from hermes_doctor.hermes.logs.rotated import ReportUnread
from hermes_doctor.hermes.supervisors.units import Unit

JOURNAL = "journal"
MOST_RECORDS = 2000
"""The number of records that a quick check asks for."""
_PATIENCE = 5.0
_RECORD = 6 * 1024
"""The usual maximum size of a record in bytes."""
_LEVELS = ("CRITICAL", "CRITICAL", "CRITICAL", "ERROR", "WARNING", "INFO", "INFO", "DEBUG")
"""By syslog priority; systemd reports an exit as a notice."""
_FIELDS = "MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,_TRANSPORT"
_BLIND = ("not seeing messages from other users", "insufficient permissions", "Permission denied")
_NOTHING = "No journal files were found"


def journal_entries(
    unit: Unit, span: LogWindow, max_bytes: int | None, report_unread: ReportUnread
) -> Iterator[LogEntry]:
    """Yield what was written since then; without `max_bytes`, more records."""
    from hermes_doctor.core.system import commands

    count = 50 * MOST_RECORDS if max_bytes is None else MOST_RECORDS
    source = f"{JOURNAL} of {unit.name}"
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
    records = [record for record in map(_record, answer.out.split("\n")) if record]
    if why_not := _silence(answer.code, answer.err, bool(records)):
        report_unread(Unread(source, why_not))
    if len(records) >= count:
        report_unread(Unread(source, f"only the last {count} records were read", partly=True))
    yield from output.output_entries(
        (_journal_line(record, number) for number, record in enumerate(records)),
        span,
        JOURNAL,
        JOURNAL,
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


def _journal_line(record: dict[str, Any], number: int) -> output.OutputLine:
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


STDERR = "stderr"
MOST_LINES = 5000
"""The number of lines that a quick check asks for."""
_STAMP = pattern(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d) ?")


def container_entries(
    unit: Unit, span: LogWindow, max_bytes: int | None, report_unread: ReportUnread
) -> Iterator[LogEntry]:
    """Yield what the container of a unit has printed since then, with or without compose."""
    from hermes_doctor.core.system import commands
    from hermes_doctor.hermes.processes import lineage
    from hermes_doctor.hermes.supervisors import docker

    source = f"{STDERR} of {unit.name}"
    container = unit.settings.get("Id")
    engine = docker.engine()
    if not container or engine is None:
        why = unit.silence if engine is None or not lineage.in_container() else ""
        report_unread(
            Unread(source, why or "what a container printed can only be read from outside of it")
        )
        return
    count = 20 * MOST_LINES if max_bytes is None else MOST_LINES
    limits = (f"--since={max(0, span.since):.0f}", f"--tail={count}")
    try:
        answer = commands.ask(
            *(engine, "logs", "--timestamps", *limits, container),
            limit=_PATIENCE,
            max_bytes=count * 512,
        )
    except CouldNotLook as error:
        report_unread(Unread(source, str(error)))
        return
    if answer.code:
        report_unread(Unread(source, f"{engine} does not give out the logs of this container"))
        return
    streams = [_container_lines(answer.out), _container_lines(answer.err)]
    if any(len(lines) >= count for lines in streams):
        report_unread(Unread(source, f"only the last {count} lines were read", partly=True))
    yield from output.output_entries(heapq.merge(*streams), span, STDERR, STDERR)


def _container_lines(text: str) -> list[output.OutputLine]:
    output_lines = []
    for number, line in enumerate(text.split("\n")):
        match = _STAMP.match(line)
        if not match:
            continue
        try:
            at = datetime.fromisoformat(match[1] + match[3]).timestamp()
        except ValueError:
            continue
        said = line[match.end() : match.end() + LONG].rstrip("\r")
        output_lines.append(output.OutputLine(at + float(match[2] or 0), number, said))
    return output_lines
