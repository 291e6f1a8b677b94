"""The latest lines that the running gateway wrote into its log.

A bounded look at the end of logs/gateway.log, for what the state file does not keep: with which
code a platform closed a connection, and whether it came back.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta

from hermes_doctor.files import open_regular, reason
from hermes_doctor.home import Home
from hermes_doctor.model import CouldNotLook
from hermes_doctor.patterns import pattern
from hermes_doctor.values import NamedTuple

TAIL = 256 * 1024
_LINE = pattern(
    r"(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(?P<ms>\d{3}) (?P<level>[A-Z]+)(?: \[[^\]\s]+\])? "
    r"(?P<logger>[A-Za-z_][\w.-]*): (?P<text>.*)"
)
_START = "Starting Hermes Gateway"


class Word(NamedTuple):
    """One line. Its text may hold anything: never shown, only matched."""

    at: datetime
    logger: str
    text: str


def read(home: Home, started_at: datetime) -> list[Word]:
    """What the process that began then has written last, oldest first.

    Lines bear the local time of the process, whatever its zone is; the time of the last write
    tells how far that is from ours.
    """
    path = home / "logs" / "gateway.log"
    try:
        fd = open_regular(path)
    except FileNotFoundError:
        return []
    try:
        st = os.fstat(fd)
        start = max(0, st.st_size - TAIL)
        data = os.pread(fd, TAIL, start)
    except OSError as error:
        raise CouldNotLook(reason(error, path)) from error
    finally:
        os.close(fd)
    written = datetime.fromtimestamp(st.st_mtime, UTC)
    if written < started_at:
        return []
    lines = data.decode("utf-8", "replace").splitlines()[1 if start else 0 :]
    return _dated(lines, written)


def _dated(lines: list[str], written: datetime) -> list[Word]:
    matched = [match for line in lines if (match := _LINE.fullmatch(line))]
    begins = [n for n, match in enumerate(matched) if match["text"].startswith(_START)]
    if begins:
        matched = matched[begins[-1] :]
    if not matched:
        return []
    newest = _time(matched[-1])
    if newest is None:
        return []
    found = []
    for match in matched:
        at = _time(match)
        if at is not None:
            ago = newest - at
            found.append(Word(written - ago, match["logger"], match["text"]))
    return found


def _time(match: re.Match[str]) -> datetime | None:
    try:
        at = datetime.fromisoformat(match["at"])
    except ValueError:
        return None
    return at.replace(tzinfo=UTC) + timedelta(milliseconds=int(match["ms"]))
