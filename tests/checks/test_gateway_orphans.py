"""Processes of an earlier gateway: named when that is certain, and never anybody else's."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.model import Status
from tests.helpers import fake_gateway, support
from tests.helpers.one_check import ask

CHECK = "gateway-orphans"
_LEFT = """
import os, subprocess, sys
if os.fork():
    os._exit(0)
os.setsid()
print(os.getpid(), flush=True)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Becomes a process whose parent is gone, with the words given."""


@contextlib.contextmanager
def left(*words: str, errors: Path | None = None) -> Iterator[int]:
    """A process without a parent of its own; ends with the end of its input."""
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(errors.open("ab")) if errors else None
        started = subprocess.Popen(
            [sys.executable, "-c", _LEFT, "-c", "import sys; sys.stdin.read()", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        assert started.stdout is not None
        pid = int(started.stdout.readline())
        started.wait()
        try:
            yield pid
        finally:
            started.communicate()


@pytest.fixture
def session() -> Iterator[Path]:
    """A folder of a browser session, as Hermes makes it."""
    name = f"h_{uuid.uuid4().hex[:10]}"
    folder = Path(tempfile.gettempdir()) / f"agent-browser-{name}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def fill(folder: Path, owner: int, pid: int) -> None:
    """Whose it is, and which process it is."""
    name = folder.name.removeprefix("agent-browser-")
    support.put(folder / f"{name}.owner_pid", str(owner))
    support.put(folder / f"{name}.pid", str(pid))


def test_healthy(home: Path) -> None:
    """Nothing is left anywhere, and a server under its living gateway is none."""
    assert ask(CHECK, home)[1] == []
    support.put(home / "logs" / "mcp-stderr.log", "")
    result, findings = ask(CHECK, home)
    assert (result.status, findings) == (Status.OK, [])


def test_server(home: Path, tmp_path: Path) -> None:
    """One that writes its errors into this home's log; not one of another home's."""
    log = support.put(home / "logs" / "mcp-stderr.log", "")
    other = support.put(tmp_path / "other" / "logs" / "mcp-stderr.log", "")
    with left(errors=log) as pid, left(errors=other):
        [finding] = ask(CHECK, home)[1]

    assert (finding.code, finding.data["pids"]) == ("MCP-ORPHANS", (pid,))
    assert f"kill {pid}" in finding.next


def test_server_in_use(home: Path) -> None:
    """One whose parent has that log open is a server of somebody who lives."""
    log = support.put(home / "logs" / "mcp-stderr.log", "")
    with (
        log.open("ab") as errors,
        subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()"],
            stdin=subprocess.PIPE,
            stderr=errors,
        ) as child,
    ):
        found = ask(CHECK, home)[1]
        child.communicate()

    assert found == []


def test_browser(home: Path, session: Path) -> None:
    """One that a gateway of this home's diary started within its life."""
    began = datetime.now(UTC) - timedelta(hours=1)
    fake_gateway.note(home, fake_gateway.DEAD, began, "gateway.start")
    with left(f"agent-browser {session.name}") as pid:
        fill(session, fake_gateway.DEAD, pid)
        [finding] = ask(CHECK, home)[1]

    assert (finding.code, finding.data["pids"]) == ("BROWSER-ORPHANS", (pid,))


@pytest.mark.parametrize("case", ["another owner", "before its life", "no browser", "alive"])
def test_not_ours(home: Path, session: Path, case: str) -> None:
    """Of another home, older than the gateway, something else under that number, still owned."""
    now = datetime.now(UTC)
    owner = {"another owner": 4_000_000, "alive": os.getpid()}.get(case, fake_gateway.DEAD)
    began = now + timedelta(hours=1) if case == "before its life" else now - timedelta(hours=1)
    fake_gateway.note(
        home,
        os.getpid() if case == "alive" else fake_gateway.DEAD,
        _start(case, began),
        "gateway.start",
    )
    with left("nothing" if case == "no browser" else f"agent-browser {session.name}") as pid:
        fill(session, owner, pid)

        assert ask(CHECK, home)[1] == []


def _start(case: str, began: datetime) -> datetime:
    from hermes_doctor.hermes.processes import process_stat

    seen = process_stat.stat(os.getpid())
    assert seen is not None
    return process_stat.start_moment(seen.start_time) if case == "alive" else began
