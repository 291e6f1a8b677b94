"""Read the output of a gateway from its container engine."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from hermes_doctor.lazy import pattern
from hermes_doctor.logs import output
from hermes_doctor.logs.entry import LogEntry, Unread
from hermes_doctor.logs.formats import LONG, LogWindow
from hermes_doctor.logs.rotated import ReportUnread
from hermes_doctor.model import CouldNotLook

if TYPE_CHECKING:
    from hermes_doctor.supervisors.unit import Unit

SOURCE = "stderr"
MOST = 5000
"""The number of lines that a quick check asks for."""
_PATIENCE = 5.0
_STAMP = pattern(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d) ?")


def entries(
    unit: Unit, span: LogWindow, max_bytes: int | None, report_unread: ReportUnread
) -> Iterator[LogEntry]:
    """Yield what the container of a unit has printed since then, with or without compose."""
    from hermes_doctor.supervisors import docker
    from hermes_doctor.system import commands

    source = f"{SOURCE} of {unit.name}"
    container = unit.settings.get("Id")
    engine = docker.engine()
    if not container or engine is None:
        why = unit.silence if engine is None or not docker.is_inside() else ""
        report_unread(
            Unread(source, why or "what a container printed can only be read from outside of it")
        )
        return
    count = 20 * MOST if max_bytes is None else MOST
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
    streams = [_lines(answer.out), _lines(answer.err)]
    if any(len(lines) >= count for lines in streams):
        report_unread(Unread(source, f"only the last {count} lines were read", partly=True))
    yield from output.entries(heapq.merge(*streams), span, SOURCE, SOURCE)


def _lines(text: str) -> list[output.OutputLine]:
    found = []
    for number, line in enumerate(text.split("\n")):
        match = _STAMP.match(line)
        if not match:
            continue
        try:
            at = datetime.fromisoformat(match[1] + match[3]).timestamp()
        except ValueError:
            continue
        said = line[match.end() : match.end() + LONG].rstrip("\r")
        found.append(output.OutputLine(at + float(match[2] or 0), number, said))
    return found
