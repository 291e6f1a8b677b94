"""Read the exit log of a gateway, which has a JSON line for every start and every orderly exit.

Hermes never rotates it, so only its tail is read. A start without an exit is a process that was
killed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hermes_doctor.core.home import Home
from hermes_doctor.core.system.files import read_tail
from hermes_doctor.hermes.processes.runtime_files import GatewayLife, parse_time, parse_word

NAME = "logs/gateway-exit-diag.log"
WATCHDOG = "logs/gateway-shutdown-watchdog.log"
TAIL = 256 * 1024
MOST = 200
UNCLEAN = "gateway.previous_unclean_exit"
"""Written by a gateway that starts, about the one before it."""
RESTART = 75
"""The exit code by which a gateway asks its supervisor to restart it."""


def read(home: Home, running: Mapping[int, int] = MappingProxyType({})) -> list[GatewayLife]:
    """Return the latest lives of gateways of this home, oldest first.

    `running` maps the pid that each running gateway has in its own namespace to the pid that it has
    here, because a container's log has the container's pids.
    """
    lives: list[GatewayLife] = []
    latest: dict[int, int] = {}
    for record in _records(home / NAME):
        pid, at = record.get("pid"), parse_time(record.get("ts"))
        tag = record.get("tag")
        if not isinstance(pid, int) or at is None or not isinstance(tag, str):
            continue
        if tag == "gateway.start":
            latest[pid] = len(lives)
            lives.append(GatewayLife(pid, at, None, "gone"))
        elif pid in latest and tag != UNCLEAN:
            lives[latest[pid]] = _ended(lives[latest[pid]], at, tag, record)
    last = [(n, life) for n, life in enumerate(lives) if latest[life.pid] == n]
    for n, life in last:
        if life.how == "gone" and life.pid in running:
            lives[n] = life._replace(how="alive", pid=running[life.pid])
    return lives[-MOST:]


def _ended(life: GatewayLife, at: datetime, tag: str, said: dict[str, Any]) -> GatewayLife:
    """Add a record of its exit to a life; a general record does not override a specific one."""
    known = life.how != "gone"
    if tag in ("gateway.exit_clean", "asyncio.run.KeyboardInterrupt"):
        return life._replace(ended=at, how="clean", exit_code=0)
    if tag in ("gateway.exit_nonzero", "asyncio.run.exception"):
        return life._replace(ended=at, how="failed", exit_code=1, error=_kind(said.get("exc_type")))
    if tag == "asyncio.run.SystemExit":
        code = said.get("code")
        number = code if isinstance(code, int) and not isinstance(code, bool) else int(bool(code))
        how = {0: "clean", RESTART: "restart"}.get(number, "failed")
        return life._replace(ended=at, how=how, exit_code=number)
    if tag == "asyncio.run.returned" and not known:
        good = said.get("success") is True
        return life._replace(ended=at, how="clean" if good else "failed", exit_code=int(not good))
    return life if known else life._replace(ended=at, how="failed")


def _kind(value: object) -> str | None:
    """Return the name of an error class; None for any other text."""
    name = parse_word(value)
    return name if name and name.endswith(("Error", "Exception", "Interrupt")) else None


def killed_by_watchdog(home: Home) -> dict[int, datetime]:
    """Return when each gateway, by pid, was killed by its own watchdog as its shutdown hung."""
    found = {}
    for record in _records(home / WATCHDOG):
        pid, at = record.get("pid"), parse_time(record.get("fired_at"))
        if record.get("event") == "shutdown_watchdog_fired" and isinstance(pid, int) and at:
            found[pid] = at
    return found


def _records(path: Path) -> Iterator[dict[str, Any]]:
    try:
        data, _ = read_tail(path, TAIL)
    except FileNotFoundError:
        return
    for line in data.split(b"\n"):
        if line.startswith(b"{"):
            try:
                said = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(said, dict):
                yield said
