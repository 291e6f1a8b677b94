"""The names of all running processes that this user can see."""

from __future__ import annotations

import os


def process_names() -> frozenset[str]:
    """Return the names; empty where there is no /proc."""
    try:
        pids = [entry for entry in os.listdir("/proc") if entry.isdigit()]
    except OSError:
        return frozenset()
    return frozenset(map(_name, pids))


def _name(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read(64).strip()
    except (OSError, ValueError):
        return ""
