"""Real gateways, each started in a home of its own and ended by its own process id."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.real.release_homes import machine
from tools import real_home, releases

PATIENCE = 60.0
CLOSED = "http://127.0.0.1:9"
"""No proxy listens there: whatever the gateway would fetch ends on this machine."""


@dataclass(frozen=True)
class Running:
    """A gateway that is up."""

    process: subprocess.Popen[bytes]
    home: Path

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Hold it still, with its files open and its locks held, so that it writes nothing."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            until(lambda: _state(self.pid) == "T", "the gateway to stand still")
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)


@contextmanager
def gateway(
    version: str,
    home: Path,
    *,
    profile: str | None = None,
    command: Sequence[str] | None = None,
    extra: Mapping[str, str] | None = None,
    inside: int | None = None,
) -> Iterator[Running]:
    """`hermes gateway run` of a release on a home, from up until ended.

    `extra` variables go over the usual ones; `inside` names a process whose network it shares.
    """
    folder = releases.python_of(version).parent
    options = ["-p", profile] if profile else []
    command = command or [str(folder / "hermes"), *options, "gateway", "run"]
    if inside:
        enter = shutil.which("nsenter") or "nsenter"
        command = [enter, "-t", str(inside), "-n", str(folder / "python"), *command]
    works_on = home / "profiles" / profile if profile else home
    port = free_port()
    with (home.parent / f"{home.name}.out").open("wb") as output:
        process = subprocess.Popen(
            command,
            executable=folder / command[0],  # an absolute one stays as it is
            env=real_home.environment(home)
            | sealed(port if _can_serve(folder) else None)
            | machine(home.parent, folder)
            | dict(extra or {}),
            cwd=home.parent,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        until(
            lambda: _is_up(process, works_on, None if inside else port),
            f"the gateway of {version}",
        )
        yield Running(process, works_on)
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process that a test started, and only that one."""
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def until(true: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    """Wait for something, and not for ever."""
    limit = time.monotonic() + patience
    while not true():
        assert time.monotonic() < limit, f"waited too long for {what}"
        time.sleep(0.05)


def _can_serve(folder: Path) -> bool:
    """Whether a release, as installed, has what its API server needs."""
    return any(folder.parent.glob("lib/python3*/site-packages/aiohttp"))


def sealed(port: int | None) -> dict[str, str]:
    """A loopback API server as its one platform; it installs, downloads and calls nothing."""
    server = {
        "API_SERVER_ENABLED": "true",
        "API_SERVER_KEY": "not-a-key-but-long-enough",
        "API_SERVER_HOST": "127.0.0.1",
        "API_SERVER_PORT": str(port),
    }
    return (server if port else {}) | {
        "HERMES_DISABLE_LAZY_INSTALLS": "1",
        "TIRITH_ENABLED": "false",
        "PIP_NO_INDEX": "1",
        "HTTP_PROXY": CLOSED,
        "HTTPS_PROXY": CLOSED,
        "ALL_PROXY": CLOSED,
        "NO_PROXY": "127.0.0.1,localhost",
    }


def _is_up(process: subprocess.Popen[bytes], home: Path, port: int | None) -> bool:
    """It says that it runs and, where its release has an API server that we reach, that answers."""
    assert process.poll() is None, f"the gateway ended with {process.returncode}"
    try:
        state = json.loads((home / "gateway_state.json").read_bytes())
    except (OSError, ValueError):
        return False
    if state["pid"] != process.pid or state["gateway_state"] != "running":
        return False
    return "api_server" not in state["platforms"] or port is None or answers(port)


def answers(port: int, patience: float = 5) -> bool:
    """Whether the API server at that port answers."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{port}/health", timeout=patience) as answer:
            healthy: bool = json.load(answer)["status"] == "ok"
            return healthy
    except (OSError, urllib.error.URLError):
        return False


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def _state(pid: int) -> str:
    """The letter that the kernel has for what a process does."""
    text = Path(f"/proc/{pid}/stat").read_text()
    return text[text.rindex(")") + 2]


def clean_environment(home: Path) -> dict[str, str]:
    """What a process near a gateway sees: its home, and a PATH."""
    return real_home.environment(home) | {"PATH": os.environ["PATH"]}
