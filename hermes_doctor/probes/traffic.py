"""When the last message came in and the last answer went out, told from the end of the log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hermes_doctor.files import read_tail
from hermes_doctor.home import Home
from hermes_doctor.patterns import pattern
from hermes_doctor.values import NamedTuple

NAME = "logs/gateway.log"
TAIL = 256 * 1024
_LINE = pattern(
    rb"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3} [A-Z]+(?: \[[^\]\s]+\])? ([\w.-]+): (.{0,40})"
)
_IN = b"inbound message: platform="
_OUT = pattern(rb"response ready: platform=|\[[^\]]{1,30}\] Sending response \(")
"""What 0.13 to 0.19 write; what a user wrote stands further back in the line."""
_QUARTER = 900


class Traffic(NamedTuple):
    """The latest of each kind."""

    last_in: datetime | None = None
    last_out: datetime | None = None
    waits_since: datetime | None = None
    """When the oldest message came in that nothing was answered after."""


def read(home: Home) -> Traffic:
    """Look at the end of the log, and at the one before it where that was rotated just now."""
    parts: list[bytes] = []
    written = None
    for name in (NAME, f"{NAME}.1"):
        try:
            data, taken = read_tail(home / name, TAIL)
        except FileNotFoundError:
            break
        written = written or taken.mtime_ns / 1e9
        parts.insert(0, data)
        if len(data) >= TAIL // 4:
            break
    return _told(b"".join(parts).split(b"\n"), written) if written else Traffic()


def _told(lines: list[bytes], written: float) -> Traffic:
    came: list[datetime] = []
    answered: list[datetime] = []
    last: datetime | None = None
    for line in lines:
        match = _LINE.match(line)
        at = _time(match[1]) if match else None
        if at is None:
            continue
        last = at
        if not match or not match[2].startswith(b"gateway."):
            continue
        if match[3].startswith(_IN):
            came.append(at)
        elif _OUT.match(match[3]):
            answered.append(at)
    if last is None:
        return Traffic()
    shift = _shift(last, written)
    waiting = [at for at in came if not answered or at > answered[-1]]
    return Traffic(
        last_in=came[-1] + shift if came else None,
        last_out=answered[-1] + shift if answered else None,
        waits_since=waiting[0] + shift if waiting else None,
    )


def _time(text: bytes) -> datetime | None:
    try:
        return datetime.fromisoformat(text.decode()).replace(tzinfo=UTC)
    except ValueError:
        return None


def _shift(last: datetime, written: float) -> timedelta:
    """Logs are in the gateway's local time: the file's own time tells how far that is from UTC."""
    away = written - last.timestamp()
    return (
        timedelta(seconds=round(away / _QUARTER) * _QUARTER) if abs(away) < 86400 else timedelta()
    )
