"""Read the memory limit, memory use and OOM kills of a control group (cgroup version 1 and 2)."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.lazy import NamedTuple

_ROOT = Path("/sys/fs/cgroup")
_UNLIMITED = 2**60
"""Version 1 writes a number near 2**63 where there is no limit."""


class Group(NamedTuple):
    """The memory figures and the freezer state of one control group."""

    limit: int | None = None
    used: int | None = None
    kills: int | None = None
    """How many of its processes the kernel killed because memory ran out."""
    frozen: bool = False


def group_of(text: str) -> Group:
    """Read the group that /proc/PID/cgroup names, with the tightest limit of it and its parents."""
    one, two = "", ""
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "memory" in controllers.split(","):
            one = path
        elif number == "0":
            two = path
    if one:
        return _version_1(one)
    return _version_2(two) if two else Group()


def _around(path: str) -> list[str]:
    """Return a group and its parents, innermost first; inside a container only its own show."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    return ["/".join(parts[:n]) for n in range(len(parts), -1, -1)]


def _version_2(path: str) -> Group:
    best = Group()
    for number, name in enumerate(_around(path)):
        folder = _ROOT / name
        limit = _number(folder / "memory.max")
        if limit is not None and (best.limit is None or limit < best.limit):
            used = _number(folder / "memory.current")
            dropped = _fields(folder / "memory.stat").get("inactive_file", 0)
            best = best._replace(limit=limit, used=None if used is None else used - dropped)
        if number == 0:
            best = best._replace(
                kills=_fields(folder / "memory.events").get("oom_kill"),
                frozen=_fields(folder / "cgroup.events").get("frozen") == 1,
            )
    return best


def _version_1(path: str) -> Group:
    best = Group()
    for number, name in enumerate(_around(path)):
        folder = _ROOT / "memory" / name
        limit = _number(folder / "memory.limit_in_bytes")
        if limit is not None and limit < _UNLIMITED and (best.limit is None or limit < best.limit):
            used = _number(folder / "memory.usage_in_bytes")
            dropped = _fields(folder / "memory.stat").get("total_inactive_file", 0)
            best = best._replace(limit=limit, used=None if used is None else used - dropped)
        if number == 0:
            best = best._replace(kills=_fields(folder / "memory.oom_control").get("oom_kill"))
    return best


def _number(path: Path) -> int | None:
    text = _read(path).strip()
    return int(text) if text.isdigit() else None


def _fields(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in _read(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _read(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read(65536))
    except OSError:
        return ""
