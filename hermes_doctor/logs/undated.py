"""Read output files without times, as launchd and Windows write them.

Only the last lines of such a file are as old as the file. Log lines of the gateway are also in its
other files, with their time, so everything up to the last of them is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.logs import output
from hermes_doctor.logs.block_reader import OpenLog
from hermes_doctor.logs.entry import LogEntry, Unread
from hermes_doctor.logs.formats import LogWindow
from hermes_doctor.logs.rotated import NoteFile, ReportUnread
from hermes_doctor.model import CouldNotLook

_TAIL = 64 * 1024


def entries(
    path: Path, name: str, span: LogWindow, report_unread: ReportUnread, note: NoteFile
) -> Iterator[LogEntry]:
    """Yield the last lines, dated with the file's mtime."""
    try:
        file = OpenLog(path, name)
    except FileNotFoundError:
        return
    except CouldNotLook as why:
        report_unread(Unread(name, str(why)))
        return
    try:
        if file.written < span.since:
            return
        start = max(0, file.size - _TAIL)
        data = file.read(start, _TAIL)
    finally:
        file.close()
    if why_not := file.lacks():
        report_unread(Unread(name, why_not))
    note(name, file.identity)
    yield from output.entries(_last(data, start, file.written), span, name, "stderr")


def _last(data: bytes, start: int, written: float) -> list[output.OutputLine]:
    kept: list[output.OutputLine] = []
    offset = start
    for number, line in enumerate(data.split(b"\n")):
        text = line.decode("utf-8", "replace").rstrip("\r")
        if output.is_log_line(text):
            kept = []
        elif (text.strip() or kept) and (number or not start):
            kept.append(output.OutputLine(written, offset, text))
        offset += len(line) + 1
    return kept
