"""Who has been paired, who waits for it, and whom nobody can pair just now: Hermes' own files.

    platforms/pairing/PLATFORM-pending.json     who was shown a code, for an hour
    platforms/pairing/PLATFORM-approved.json    who is let in
    platforms/pairing/_rate_limits.json         who asked when, and platforms that are locked

Older homes keep the folder `pairing` in the home. Names in there are what strangers call
themselves, and up to 0.14 the code itself is the name of an entry: neither is shown as it is.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import ABSENT, MEGABYTE, Snapshot, listing, read

OLD, NEW = "pairing", "platforms/pairing"
LIMITS = "_rate_limits.json"
_PENDING, _APPROVED = "-pending.json", "-approved.json"
_LIMIT = 4 * MEGABYTE
VALID = 3600.0
"""Seconds for which a code is good."""
_CONTENT_COUNTS = (0, 18)
"""From this release on an empty old folder does not count."""


class Kept(NamedTuple):
    """One file of the store."""

    path: Path
    data: bytes
    snapshot: Snapshot
    values: Mapping[str, Any]
    """Empty where it is not there, or is nothing that Hermes can use."""


class PairingRequest(NamedTuple):
    """Somebody who was shown a code that is still good."""

    platform: str
    entry: str
    """The name of its entry. Up to 0.14 the code itself: never shown."""
    user: str
    name: str
    """What they call themselves. Anything can be in it."""
    at: float


class Lockout(NamedTuple):
    """A platform on which nobody can be paired, and until when."""

    platform: str
    until: float


class Pairing(NamedTuple):
    """The store of one home."""

    folder: Path
    """The one that the gateway uses."""
    other: Path
    """The one that it does not."""
    requests: tuple[PairingRequest, ...]
    lockouts: tuple[Lockout, ...]
    approved: Mapping[str, frozenset[str]]
    """By platform: who is let in."""
    astray: Mapping[str, frozenset[str]]
    """By platform: who was approved in the folder that does not count."""


def find(home: Path, release: tuple[int, ...] | None, now: float | None = None) -> Pairing:
    """The pairings of a home as a gateway of this release sees them; None: the newest."""
    folder, other = folders(home, release)
    moment = time.time() if now is None else now
    names = listing(folder)
    approved = _approved(folder, names)
    elsewhere = _approved(other, listing(other))
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
    """The folder that counts, and the one that does not."""
    old, new = home / OLD, home / NEW
    counts = os.path.exists(old)
    if counts and os.path.isdir(old) and (release is None or release >= _CONTENT_COUNTS):
        counts = bool(_names(old))
    return (old, new) if counts else (new, old)


def _names(folder: Path) -> list[str]:
    try:
        return listing(folder)
    except CouldNotLook:
        return ["unreadable"]  # Hermes takes it for occupied, too


def kept(path: Path) -> Kept:
    """A file of the store as Hermes reads it: what is damaged is empty."""
    import json

    try:
        data, taken = read(path, _LIMIT)
    except FileNotFoundError:
        return Kept(path, b"", ABSENT, {})
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        values = None
    return Kept(path, data, taken, values if isinstance(values, dict) else {})


def pending_file(folder: Path, platform: str) -> Path:
    """Where those of a platform wait."""
    return folder / f"{platform}{_PENDING}"


def approved_file(folder: Path, platform: str) -> Path:
    """Where those of a platform are kept who are let in."""
    return folder / f"{platform}{_APPROVED}"


def waits(entry: object, now: float) -> bool:
    """Whether an entry still counts; what bears no time does not."""
    if not isinstance(entry, dict):
        return False
    made = _seconds(entry.get("created_at"))
    return made is not None and now - made <= VALID


def _seconds(value: object) -> float | None:
    """A moment as a number; anything can be in a file, also what no clock shows."""
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
            if waits(info, now) and isinstance(info.get("user_id"), str):
                said = info.get("user_name")
                yield PairingRequest(
                    platform=name.removesuffix(_PENDING),
                    entry=entry,
                    user=info["user_id"],
                    name=said if isinstance(said, str) else "",
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
    """What a file holds; one that is closed to us says nothing, and is another check's business."""
    try:
        return kept(path).values
    except CouldNotLook:
        return {}
