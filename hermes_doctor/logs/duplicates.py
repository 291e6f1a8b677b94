"""Remove entries that Hermes wrote to two log files."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator

from hermes_doctor.logs.entry import LogEntry

_REMEMBERED = 10.0
"""Seconds for which an entry is remembered; files of one process agree to the millisecond."""
_MOST = 50_000


def without_duplicates(entries: Iterator[LogEntry], levels: Container[str]) -> Iterator[LogEntry]:
    """Yield the entries without those that another of Hermes' own files already had.

    Only entries of these levels are in several files. A line that occurs twice in one file was
    written twice.
    """
    told: dict[int, dict[str, int]] = {}
    order: deque[tuple[float, int]] = deque()
    for entry in entries:
        if entry.level not in levels or entry.kind != "log":
            yield entry
            continue
        key = hash(entry[:4])  # texts may be long, and there may be many
        counts = told.get(key)
        if counts is None:
            told[key] = {_log(entry.source): 1}
            order.append((entry.at, key))
            while order[0][0] < entry.at - _REMEMBERED or len(order) > _MOST:
                told.pop(order.popleft()[1], None)
            yield entry
            continue
        most = max(counts.values())
        name = _log(entry.source)
        counts[name] = counts.get(name, 0) + 1
        if counts[name] > most:
            yield entry


def _log(source: str) -> str:
    """Return the name of the log that a rotated file belongs to."""
    return source.partition(".log")[0]
