"""Installations of Hermes whose own files do harm as soon as their Python starts."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.helpers import fake_environments, support

VERSION = "0.99.0"
SYSTEM_PYTHON = "/usr/bin/python3"


def make(home: Path, line: str = "") -> Path:
    """Give a home an environment with a `.pth` file of this one line; return its packages."""
    root = home / "hermes-agent" / "venv"
    subprocess.run([SYSTEM_PYTHON, "-m", "venv", "--without-pip", str(root)], check=True)
    fake_environments.become(root, VERSION)
    packages = fake_environments.packages(root)
    if line:
        support.put(packages / "harm.pth", f"import os; {line}\n")
    return packages


def code(packages: Path, source: str) -> None:
    """Let a `.pth` file run this module."""
    support.put(packages / "harm.py", source)
    support.put(packages / "harm.pth", "import harm\n")


class Listener:
    """A server on this machine that counts who connects."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]

    def reached(self) -> bool:
        """Whether somebody has connected."""
        self.socket.settimeout(0.5)
        try:
            self.socket.accept()[0].close()
        except TimeoutError:
            return False
        return True


@contextmanager
def listener() -> Iterator[Listener]:
    """A server while the context lasts."""
    server = Listener()
    try:
        yield server
    finally:
        server.socket.close()


def processes_with(word: str) -> list[int]:
    """Return the processes with this word in their command line or environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        except OSError:
            continue
        if word.encode() in text:
            found.append(int(folder.name))
    return found
