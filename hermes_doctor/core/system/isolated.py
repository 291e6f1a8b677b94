"""Start a command that is not trusted, without network and without access to files for writing.

`keeper` says what is in force before the command's first instruction. All of its processes end with
it, with `end`, and with this process.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.system import keeper

_PATIENCE = 3.0
"""Seconds until a keeper that does not end is killed."""
_CHUNK = 65536


class Limits(NamedTuple):
    """What one command may use, together with everything that it starts; sizes in megabytes."""

    output: int = 1
    memory: int = 600
    """A Hermes that is asked about itself uses 160."""
    file: int = 128
    room: int = 256
    """For all files in the command's own folder."""
    processes: int = 64


class OwnFolder(NamedTuple):
    """The folder in which the command may write, and what it finds there."""

    path: Path
    names: tuple[str, ...] = ()
    also: tuple[Path, ...] = ()
    """Other folders in which it may write."""


class RunningCommand:
    """A command that runs; its output is collected by `read`."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        given: bytes,
        env: Mapping[str, str],
        folder: OwnFolder,
        cwd: Path,
        user: tuple[int, int, Sequence[int]] | None = None,
        limits: Limits | None = None,
        namespaces: bool = True,
    ) -> None:
        """Start it. `user` is the uid, the gid and the groups that it gets."""
        self.limits = limits or Limits()
        self.out, self.err = b"", b""
        order = {
            **{"command": [str(word) for word in command], "env": dict(env), "cwd": str(cwd)},
            **{"writable": [str(place) for place in (folder.path, *folder.also)]},
            **{"folders": folder.names, "user": user, "namespaces": namespaces},
            **{"parent": os.getpid(), **self.limits._asdict()},
        }
        with tempfile.TemporaryFile() as question:
            question.write(given)
            question.seek(0)
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", keeper.__file__, json.dumps(order)],
                env={"PATH": os.defpath},
                cwd="/",
                stdin=question,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        for pipe in self._pipes():
            os.set_blocking(pipe.fileno(), False)

    def _pipes(self) -> list[IO[bytes]]:
        return [pipe for pipe in (self._process.stdout, self._process.stderr) if pipe is not None]

    def ended(self) -> int | None:
        """Collect what it has written, and return its exit code if it has ended."""
        code = self._process.poll()
        out, err = (self._rest(pipe) for pipe in self._pipes())
        self.out += out
        self.err += err
        return code

    @property
    def wrote_too_much(self) -> bool:
        """Whether it has written more than is allowed."""
        return max(len(self.out), len(self.err)) > self.limits.output * keeper.MEGABYTE

    def _rest(self, pipe: IO[bytes]) -> bytes:
        """Return what is in a pipe, but not much more than is allowed."""
        parts: list[bytes] = []
        with contextlib.suppress(BlockingIOError):
            while sum(map(len, parts)) <= self.limits.output * keeper.MEGABYTE:
                part = os.read(pipe.fileno(), _CHUNK)
                if not part:
                    break
                parts.append(part)
        return b"".join(parts)

    def end(self) -> None:
        """End it and everything that it started."""
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in self._pipes():
            pipe.close()

    def reason(self) -> str:
        """Return why it was not started or was ended, if that was not its own doing."""
        lines = self.err[-4096:].decode("utf-8", "replace").splitlines()
        ours = [line for line in lines if line.startswith(keeper.SIGN)]
        return ours[-1].removeprefix(keeper.SIGN) if ours else ""
