"""Read Hermes' pairing files: approved users, pending requests and locked platforms.

    platforms/pairing/PLATFORM-pending.json     users with a code, which is valid for an hour
    platforms/pairing/PLATFORM-approved.json    approved users
    platforms/pairing/_rate_limits.json         times of requests, and locked platforms

Older homes have the folder `pairing` in the home. Names in these files are chosen by strangers, and
up to 0.14 the code itself is the key of an entry: neither may be shown unredacted.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import ABSENT, MEGABYTE, Snapshot, list_folder, read

OLD, NEW = "pairing", "platforms/pairing"
LIMITS = "_rate_limits.json"
_PENDING, _APPROVED = "-pending.json", "-approved.json"
_LIMIT = 4 * MEGABYTE
VALID = 3600.0
"""Seconds for which a code is valid."""
_CONTENT_COUNTS = (0, 18)
"""From this release on an empty old folder does not count."""


class PairingFile(NamedTuple):
    """A pairing file."""

    path: Path
    data: bytes
    snapshot: Snapshot
    values: Mapping[str, Any]
    """Empty if it is missing or nothing that Hermes can use."""


class PairingRequest(NamedTuple):
    """A user with a pairing code that is still valid."""

    platform: str
    entry: str
    """The key of its entry. Up to 0.14 the code itself: never show it."""
    user: str
    name: str
    """The name that the user chose. It may contain anything."""
    at: float


class Lockout(NamedTuple):
    """A platform on which pairing is locked, and until when."""

    platform: str
    until: float


class Pairing(NamedTuple):
    """The pairing data of one home."""

    folder: Path
    """The folder that the gateway uses."""
    other: Path
    """The folder that it does not use."""
    requests: tuple[PairingRequest, ...]
    lockouts: tuple[Lockout, ...]
    approved: Mapping[str, frozenset[str]]
    """Approved users by platform."""
    astray: Mapping[str, frozenset[str]]
    """Users by platform who are approved only in the unused folder."""

    @property
    def is_used(self) -> bool:
        """Whether anyone was ever paired, or asked for it."""
        return bool(self.requests or self.lockouts or self.approved or self.astray)


def find(home: Path, release: tuple[int, ...] | None, now: float | None = None) -> Pairing:
    """Read the pairings of a home as a gateway of this release does; None means the newest."""
    folder, other = folders(home, release)
    moment = time.time() if now is None else now
    names = list_folder(folder)
    approved = _approved(folder, names)
    elsewhere = _approved(other, list_folder(other))
    return Pairing(
        folder,
        other,
        tuple(_requests(folder, names, moment)),
        tuple(_lockouts(folder, names, moment)),
        approved,
        {
            platform: more
            for platform, users in elsewhere.items()
            if (more := users - approved.get(platform, frozenset()))
        },
    )


def folders(home: Path, release: tuple[int, ...] | None) -> tuple[Path, Path]:
    """Return the folder that is used, and the one that is not."""
    old, new = home / OLD, home / NEW
    counts = os.path.exists(old)
    if counts and os.path.isdir(old) and (release is None or release >= _CONTENT_COUNTS):
        counts = bool(_names(old))
    return (old, new) if counts else (new, old)


def _names(folder: Path) -> list[str]:
    try:
        return list_folder(folder)
    except CouldNotLook:
        return ["unreadable"]  # Hermes also treats it as occupied


def read_pairing_file(path: Path) -> PairingFile:
    """Read a pairing file as Hermes does: a damaged one is empty."""
    import json

    try:
        data, snapshot = read(path, _LIMIT)
    except FileNotFoundError:
        return PairingFile(path, b"", ABSENT, {})
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        values = None
    return PairingFile(path, data, snapshot, values if isinstance(values, dict) else {})


def pending_file(folder: Path, platform: str) -> Path:
    """Return the file with the pending requests of a platform."""
    return folder / f"{platform}{_PENDING}"


def approved_file(folder: Path, platform: str) -> Path:
    """Return the file with the approved users of a platform."""
    return folder / f"{platform}{_APPROVED}"


def is_pending(entry: object, now: float) -> bool:
    """Tell whether an entry is still valid; one without a time is not."""
    if not isinstance(entry, dict):
        return False
    made = _seconds(entry.get("created_at"))
    return made is not None and now - made <= VALID


def _seconds(value: object) -> float | None:
    """Convert a time to a float; a file may contain impossible ones."""
    if not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _requests(folder: Path, names: list[str], now: float) -> Iterator[PairingRequest]:
    for name in names:
        if not name.endswith(_PENDING) or name.startswith("_"):
            continue
        found = _readable(folder / name)
        for entry, info in found.items():
            if is_pending(info, now) and isinstance(info.get("user_id"), str):
                failure = info.get("user_name")
                yield PairingRequest(
                    platform=name.removesuffix(_PENDING),
                    entry=entry,
                    user=info["user_id"],
                    name=failure if isinstance(failure, str) else "",
                    at=_seconds(info["created_at"]) or 0.0,
                )


def _lockouts(folder: Path, names: list[str], now: float) -> Iterator[Lockout]:
    if LIMITS not in names:
        return
    for name, value in _readable(folder / LIMITS).items():
        mark, _, platform = name.partition(":")
        until = _seconds(value) if mark == "_lockout" else None
        if until is not None and until > now:
            yield Lockout(platform, until)


def _approved(folder: Path, names: list[str]) -> dict[str, frozenset[str]]:
    return {
        name.removesuffix(_APPROVED): frozenset(found)
        for name in names
        if name.endswith(_APPROVED) and (found := _readable(folder / name))
    }


def _readable(path: Path) -> Mapping[str, Any]:
    """Read a file; empty if we may not read it, which another check reports."""
    try:
        return read_pairing_file(path).values
    except CouldNotLook:
        return {}
