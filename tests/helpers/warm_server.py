"""Run the command in forks of a process that has already loaded everything.

Starting Python and loading the tool takes ten times as long as most check runs. A fork is still a
process of its own, with its own environment, working folder, output and exit code. It does not
cover the start-up itself, which `support.spawned` does. `python -m tests.helpers.warm_server` is
the process.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import io
import json
import os
import pkgutil
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[2]
LATE = (
    *("bz2", "ctypes", "difflib", "getpass", "hashlib", "lzma", "pwd", "shlex", "zipfile", "zlib"),
    *("dotenv", "psutil", "rich.console", "rich.markdown", "rich.text"),
    *("typer._click.decorators", "typer._click.exceptions"),
    *("encodings.cp437", "encodings.idna", "encodings.utf_8_sig", "encodings.utf_16"),
    *("encodings.utf_16_be", "encodings.utf_16_le", "encodings.utf_32"),
)
"""Modules that the tool imports late: an unprivileged user may not have access to this Python."""
Asked = dict[str, Any]
Prepare = Callable[[Asked, Path], None]
"""Called in the fork before the command starts; the path is a file for its notes."""


class Server:
    """The warm process, as seen from a test."""

    def __init__(self, module: str, *, alone: bool = False) -> None:
        environ = {k: v for k, v in os.environ.items() if k not in ("HERMES_HOME", "SUDO_USER")}
        self.process = subprocess.Popen(
            [*(_apart() if alone else ()), sys.executable, "-m", module],
            cwd=ROOT,
            env=environ | {"NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(
        self,
        *args: str,
        env: Mapping[str, str],
        cwd: Path,
        timeout: float,
        user: int | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Run the command once in this environment, and return its code, out, err and notes.

        `instead` has other values for constants of the tool, such as shorter waits.
        """
        asked = {"args": args, "env": dict(env), "cwd": str(cwd), "timeout": timeout, "user": user}
        asked |= more
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        said: dict[str, Any] = json.loads(self.process.stdout.readline())
        if said["code"] is None:
            raise subprocess.TimeoutExpired(list(args), timeout, said["out"], said["err"])
        return said

    def close(self) -> None:
        """Stop it."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


@functools.cache
def _apart() -> tuple[str, ...]:
    """Return a prefix that isolates a command from other processes; empty if not allowed.

    A repair reads every process of the machine several times, which is half of its work.
    """
    command = ("unshare", "--pid", "--fork", "--mount-proc")
    if shutil.which(command[0]) is None:
        return ()
    allowed = subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    return command if allowed else ()


@functools.cache
def shared() -> Server:
    """Return the server for all tests of this process, with which it stops."""
    server = Server(__name__)
    atexit.register(server.close)
    return server


# -- in the warm process -------------------------------------------------------------------


def serve(prepare: Prepare | None = None) -> None:
    """Answer one call after the other until the input ends."""
    import hermes_doctor
    from hermes_doctor.diagnosis.plugins import index
    from tests.helpers import own_gateways

    ours = pkgutil.walk_packages(hermes_doctor.__path__, "hermes_doctor.")
    for name in [*(module.name for module in ours), *LATE]:
        importlib.import_module(name)
    for kind in index.FOLDERS:
        index.compute(kind)  # imports all files
    own_gateways.hide_those_of_other_tests()
    _load_once()
    _look_once()
    gc.freeze()  # keeps memory shared with the forks
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        asked = json.loads(line)
        with tempfile.TemporaryDirectory() as folder:
            out, err, notes = (Path(folder) / name for name in ("out", "err", "notes"))
            pid = os.fork()
            if not pid:
                _run(asked, out, err, notes, prepare)
            code = _ended(pid, asked["timeout"])
            said = {
                "code": code,
                "out": out.read_text(),
                "err": err.read_text(),
                "notes": notes.read_text() if notes.exists() else "",
            }
        answers.write(json.dumps(said) + "\n")
        answers.flush()


def _load_once() -> None:
    """Load the built-in plugins and build the commands, so that no fork does it again.

    That takes 15 ms of the 82 ms CPU of a `fix`, and 13 of the 23 ms of an `undo` without a run.
    """
    import typer.main

    from hermes_doctor.cli import commands
    from hermes_doctor.diagnosis.plugins import load

    load_some, builtin = load.load, load.load()
    build = typer.main.get_command
    for part in ("fixes", "rules", "explanations", "effects"):
        getattr(builtin, part)
    built = build(commands.app)

    def load_plugins(folders: Sequence[Path] = ()) -> load.Plugins:
        return load_some(folders) if folders else builtin

    def build_only(words: Sequence[str], among: typer.Typer = commands.app) -> None:
        """All commands are built."""

    def get_command(typer_instance: typer.Typer) -> Any:
        return built if typer_instance is commands.app else build(typer_instance)

    load.load, commands.build_only = load_plugins, build_only
    typer.main.get_command = get_command


def _look_once() -> None:
    """Look at a home, so that no fork compiles patterns and reads knowledge again.

    That takes 20 ms of the 90 ms CPU of a check.
    """
    from hermes_doctor.cli import main
    from tests.helpers import support

    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.TextIOWrapper(io.BytesIO())):
        for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
            os.environ[name] = folder  # a fork gets an environment of its own
        home = support.healthy(Path(folder) / "home")
        for words in (["check"], ["check", "--json"], ["fix", "--json"]):
            sys.argv = ["hermes-doctor", *words, "--home", str(home)]
            main._run()
    for thread in {*threading.enumerate()} - {threading.main_thread()}:
        thread.join(10)  # a fork must not copy the locks of a thread


def _ended(pid: int, timeout: float) -> int | None:
    """Return the exit code of a fork; None if it was killed because of the timeout."""
    watch = os.pidfd_open(pid)
    in_time = select.select([watch], [], [], timeout)[0]
    os.close(watch)
    if not in_time:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) if in_time else None


def _run(asked: Asked, out: Path, err: Path, notes: Path, prepare: Prepare | None) -> NoReturn:
    from hermes_doctor import __main__ as command

    files = [Path(os.devnull), out, err]
    if asked.get("terminal"):
        files = [Path(asked["terminal"])] * 3
        for path in (out, err):
            path.touch()
    for fd, path in enumerate(files):
        opened = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, fd)
        os.close(opened)
    if asked["env"].get("TMPDIR") != os.environ.get("TMPDIR"):
        tempfile.tempdir = None  # determined again from TMPDIR
    os.environ.clear()
    os.environ.update(asked["env"])
    time.tzset()
    os.chdir(asked["cwd"])
    sys.argv = [str(command.__file__), *asked["args"]]
    for place, value in (asked.get("settings") or {}).items():
        module, _, name = place.rpartition(".")
        assert hasattr(sys.modules[module], name), place
        setattr(sys.modules[module], name, value)
    if prepare:
        prepare(asked, notes)
    if (user := asked["user"]) is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    try:
        command.main()
    finally:
        sys.stderr.flush()
        os._exit(99)


if __name__ == "__main__":
    serve()
