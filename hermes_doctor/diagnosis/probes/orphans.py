"""Find processes that an earlier gateway of this home left behind: MCP servers and browsers.

Only certain ones count. An MCP server's stderr is the home's own log for them; a browser's folder
names the process that started it, and the exit diary lists that process as a gateway.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import open_files
from hermes_doctor.core.system.files import folder_entries, read
from hermes_doctor.hermes.processes import gateway_processes, lineage, process_stat
from hermes_doctor.hermes.processes.runtime_files import GatewayLife

_BROWSERS = ("agent-browser-h_", "agent-browser-cdp_", "agent-browser-hermes_")
MOST = 2000
MCP, BROWSER = "mcp", "browser"


class Orphan(NamedTuple):
    """A process that was left behind."""

    pid: int
    name: str
    kind: str
    """MCP or BROWSER."""
    started_at: datetime
    proof: str
    """The file that proves that it belongs to this home."""


def servers(home: Home, gateway_pids: Iterable[int]) -> list[Orphan]:
    """Find MCP servers of this home without a Hermes parent; `gateway_pids` are running."""
    log = home / "logs" / "mcp-stderr.log"
    try:
        known = os.stat(log)
    except OSError:
        return []
    if not os.path.exists("/proc/self/fd"):
        raise CouldNotLook("could not see which gateway the MCP servers belong to")
    living = set(gateway_pids)
    orphans = []
    for pid in gateway_processes.all_pids():
        try:
            st = os.stat(f"/proc/{pid}/fd/2")
        except OSError:
            continue
        if (st.st_dev, st.st_ino) != (known.st_dev, known.st_ino) or pid in living:
            continue
        seen = process_stat.stat(pid)
        if seen and seen.doing != "Z" and not _has_hermes_above(seen.parent, log):
            began = process_stat.start_moment(seen.start_time)
            orphans.append(Orphan(pid, seen.name, MCP, began, home.name_of(log)))
    return orphans


def _has_hermes_above(parent: int, log: Path) -> bool:
    """Tell whether one of its ancestors is Hermes or another of its MCP servers."""
    for _ in range(lineage.MOST_ANCESTORS):
        if parent <= 1:
            return False
        if any(descriptor.path == str(log) for descriptor in open_files.descriptors(parent) or ()):
            return True
        seen = process_stat.stat(parent)
        if seen is None:
            return False
        if seen.name == "hermes":
            return True
        parent = seen.parent
    return False


def browsers(lives: Iterable[GatewayLife]) -> list[Orphan]:
    """Find browsers of gateways in this home's exit diary that no longer run."""
    dead = {life.pid: life for life in lives if life.how != "alive"}
    orphans = []
    for folder in _folders() if dead else ():
        session = folder.name.removeprefix("agent-browser-")
        owner = _number(folder / f"{session}.owner_pid")
        pid = _number(folder / f"{session}.pid")
        life = dead.get(owner or 0)
        seen = process_stat.stat(pid) if pid and life else None
        if not (seen and life and pid) or seen.doing == "Z" or _alive(life):
            continue
        began = process_stat.start_moment(seen.start_time)
        if _is_browser(pid, session) and _in_life(began, life):
            orphans.append(Orphan(pid, seen.name, BROWSER, began, str(folder)))
    return orphans


def _folders() -> Iterator[Path]:
    """Yield the folders of browser sessions of this user, or of all users for root."""
    for place in {Path(os.environ.get("TMPDIR") or "/tmp"), Path("/tmp")}:
        try:
            for entry in folder_entries(place, MOST):
                if entry.name.startswith(_BROWSERS) and entry.is_dir(follow_symlinks=False):
                    yield place / entry.name
        except OSError:
            continue


def _number(path: Path) -> int | None:
    """Read a pid from a file in a folder that everyone may write to."""
    try:
        text = read(path, 64)[0].strip() if stat.S_ISREG(os.lstat(path).st_mode) else b""
    except (OSError, CouldNotLook):
        return None
    return int(text) if text.isdigit() and len(text) < 10 else None


def _is_browser(pid: int, session: str) -> bool:
    """Tell whether the process itself names that session; a planted pid proves nothing."""
    words = b""
    for name in ("cmdline", "environ"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                words += file.read(65536)
        except OSError:
            return False
    return b"agent-browser" in words and os.fsencode(session) in words


def _in_life(began: datetime, life: GatewayLife) -> bool:
    slack = timedelta(seconds=5)
    return life.began - slack <= began and (life.ended is None or began <= life.ended + slack)


def _alive(life: GatewayLife) -> bool:
    """Tell whether that gateway still runs; its start time is compared too."""
    seen = process_stat.stat(life.pid)
    if seen is None or seen.doing == "Z":
        return False
    return abs((process_stat.start_moment(seen.start_time) - life.began).total_seconds()) < 120
