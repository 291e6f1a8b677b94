"""Find modules of the installed Hermes that are missing, by the installer's RECORD file."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.model import CouldNotLook
from hermes_doctor.system import file_facts
from hermes_doctor.system.files import MEGABYTE, list_folder, open_regular, read

LIMIT = 4 * MEGABYTE
QUICK = frozenset({"hermes_cli", "gateway", "gateway/platforms", "cron", "agent", "tools", ""})
"""The folders that a quick check run compares; a gateway needs them to start."""


def missing_modules(packages: Path, version: str, *, deep: bool) -> list[str]:
    """Return the modules of Hermes that were installed and no longer exist."""
    record = packages / f"hermes_agent-{version}.dist-info" / "RECORD"
    try:
        fd = open_regular(record)
        try:
            kind = "installed" if deep else "installed-quick"
            wanted = file_facts.ask(kind, fd, record, lambda: _installed(record, deep=deep))
        finally:
            os.close(fd)
    except (FileNotFoundError, CouldNotLook):
        return []
    gone: list[str] = []
    for folder, files in wanted.items():
        try:
            there = set(list_folder(packages / folder if folder else packages))
        except CouldNotLook:
            continue
        gone += [f"{folder}/{file}" if folder else file for file in files if file not in there]
    return gone


def _installed(record: Path, *, deep: bool) -> dict[str, list[str]]:
    """The names of the installed modules, by their folder."""
    data, _ = read(record, LIMIT)
    wanted: dict[str, list[str]] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        name = line.partition(",")[0]
        if name.endswith(".py") and not name.startswith(("/", "../")):
            folder, _, file = name.rpartition("/")
            if deep or folder in QUICK:
                wanted.setdefault(folder, []).append(file)
    return wanted
