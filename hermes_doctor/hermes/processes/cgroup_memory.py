"""Read the memory limit, memory use and OOM kills of a control group (cgroup version 1 and 2)."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple

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
    version_1, version_2 = "", ""
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "memory" in controllers.split(","):
            version_1 = path
        elif number == "0":
            version_2 = path
    if version_1:
        return _version_1(version_1)
    return _version_2(version_2) if version_2 else Group()


def _around(path: str) -> list[str]:
    """Return a group and its parents, innermost first; inside a container only its own show."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    return ["/".join(parts[:n]) for n in range(len(parts), -1, -1)]


def _version_2(path: str) -> Group:
    own = _ROOT / _around(path)[0]
    tightest = _tightest(_ROOT, path, "memory.max", "memory.current", "inactive_file")
    return tightest._replace(
        kills=_fields(own / "memory.events").get("oom_kill"),
        frozen=_fields(own / "cgroup.events").get("frozen") == 1,
    )


def _version_1(path: str) -> Group:
    root = _ROOT / "memory"
    own = root / _around(path)[0]
    tightest = _tightest(
        *(root, path, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    )
    return tightest._replace(kills=_fields(own / "memory.oom_control").get("oom_kill"))


def _tightest(root: Path, path: str, limit_file: str, use_file: str, droppable: str) -> Group:
    """Return the figures of the group with the lowest limit among a group and its parents."""
    tightest = Group()
    for name in _around(path):
        folder = root / name
        limit = _number(folder / limit_file)
        known = _UNLIMITED if tightest.limit is None else tightest.limit
        if limit is not None and limit < known:
            used = _number(folder / use_file)
            dropped = _fields(folder / "memory.stat").get(droppable, 0)
            tightest = Group(limit, None if used is None else used - dropped)
    return tightest


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
