"""Find traces of what was used with a home: databases that are missing now, and platforms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes_doctor.backup.vault import copies
from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.message import count, text
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import list_folder, read_head, read_tail
from hermes_doctor.hermes.knowledge.releases import load_knowledge
from hermes_doctor.hermes.processes.runtime_files import PlatformState

_LOGS = ("logs/gateway.log", "logs/agent.log")
_PART = 256 * 1024
"""Bytes at the start and at the end of a log that are searched."""
_SESSION = pattern(rb"\[\d{8}_\d{6}_[0-9a-f]{4,8}\]|Session storage: /")
_TASKS = pattern(rb"kanban dispatcher \[[^\]\n]{1,80}\]: spawned=")
_RUNNING = pattern(rb'"gateway_state": *"(?:running|draining|stopp(?:ing|ed))"')
_RUNS = 50
"""How many receipts are searched, newest first."""


class Trace(NamedTuple):
    """One trace: where it is, and what it shows."""

    where: str
    what: str


def traces_of(home: Home, path: Path) -> list[Trace]:
    """Return what shows that the database at `path` was used; [] for other databases."""
    if path == home / "state.db":
        return list(_of_history(home))
    if path.name == "kanban.db":
        return list(_of_board(home, path))
    return []


def _of_history(home: Home) -> Iterator[Trace]:
    if number := copies.session_file_count(home):
        yield Trace("sessions", count(number, "session file"))
    if b'"session_id"' in _head(home / "sessions/sessions.json"):
        yield Trace("sessions/sessions.json", "chats of this bot")
    for name in _LOGS:
        if _mentions(home / name, _SESSION):
            yield Trace(name, "sessions of this bot")
    if _RUNNING.search(_head(home / "gateway_state.json")):
        yield Trace("gateway_state.json", "a gateway has run here")
    for name in ("cron/output", "pending_messages"):
        if number := len(_names(home / name)):
            yield Trace(name, count(number, "entry", "entries"))
    yield from _in_receipts(home, "state.db")


def _of_board(home: Home, path: Path) -> Iterator[Trace]:
    folder = home / "kanban" if path.parent == home.path else path.parent
    for name in ("workspaces", "attachments", "logs"):
        if number := len(_names(folder / name)):
            yield Trace(
                home.name_of(folder / name), text("files of {tasks}", tasks=count(number, "task"))
            )
    if path.parent == home.path and _mentions(home / _LOGS[0], _TASKS):
        yield Trace(_LOGS[0], "tasks of a board were started")
    yield from _in_receipts(home, home.name_of(path))


def _in_receipts(home: Home, name: str) -> Iterator[Trace]:
    """A run of this tool that changed the database."""
    wanted = f'"path": "{name}"'.encode()
    for run in sorted(_names(home.runs), reverse=True)[:_RUNS]:
        if wanted in _head(home.runs / run / "run.json"):
            yield Trace(f"run {run}", text("this tool changed {name}", name=name))
            return


def _mentions(path: Path, wanted: re.Pattern[bytes]) -> bool:
    try:
        return bool(wanted.search(_head(path)) or wanted.search(read_tail(path, _PART)[0]))
    except (OSError, CouldNotLook):
        return False


def _head(path: Path) -> bytes:
    try:
        return read_head(path, _PART)[0]
    except (OSError, CouldNotLook):
        return b""


def _names(folder: Path) -> list[str]:
    try:
        return [name for name in list_folder(folder) if not name.startswith(".")]
    except (OSError, CouldNotLook):
        return []


PROGRAMS = ("api_server", "webhook", "msgraph_webhook", "homeassistant", "a2a")
"""Platforms through which programs talk to the bot, not people."""
SOURCES = "SELECT source, count(*) FROM sessions GROUP BY source ORDER BY 2 DESC LIMIT 40"
"""Asks state.db for the platforms of its conversations."""


class EarlierPlatform(NamedTuple):
    """A platform that was used, and where that is written."""

    name: str
    label: str
    variables: tuple[str, ...]
    """The variables that switch it on."""
    where: str
    what: str


def find_earlier_platforms(
    sources: Iterable[Sequence[Any]], states: Mapping[str, PlatformState]
) -> list[EarlierPlatform]:
    """Return the platforms in the message history, then those that a gateway once connected."""
    found: dict[str, EarlierPlatform] = {}
    known = load_knowledge("platforms")["platforms"]
    used = [(str(name), "state.db", count(int(n), "conversation")) for name, n in sources]
    used += [
        (name, "gateway_state.json", "was connected")
        for name, said in states.items()
        if said.state in ("connected", "disconnected")
    ]
    for name, where, what in used:
        facts = known.get(name)
        if facts and name not in PROGRAMS and name not in found:
            variables = tuple(facts["variables"])
            found[name] = EarlierPlatform(name, facts["label"], variables, where, what)
    return list(found.values())
