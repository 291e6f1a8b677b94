"""Run the command in forks of a warm process, and interrupt it at any of its writes.

Every call that can change a disk is counted at the operating system's interface, which is finer
than the functions of `hermes_doctor.core.system.disk`. At the N-th call the fork kills itself, gets
a disk error, or gets a signal. `python -m tests.helpers.crash_server` is the warm process;
`serving()` starts one, which stops with the tests.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import fnmatch
import functools
import hashlib
import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from hermes_doctor.core.system import renameat2
from tests.helpers import support, warm_server
from tests.helpers.warm_server import ROOT

CALLS = (
    "write",
    "pwrite",
    "fsync",
    "fdatasync",
    "rename",
    "replace",
    "link",
    "unlink",
    "remove",
    "rmdir",
    "chmod",
    "fchmod",
    "chown",
    "fchown",
    "lchown",
    "mkdir",
    "setxattr",
    "symlink",
    "utime",
    "truncate",
    "ftruncate",
    "copy_file_range",
    "sendfile",
    "open",
)
"""Functions of `os` that change a disk; `open` only if it may create or truncate."""
NEEDS_ROOM = (
    "write", "copy_file_range", "fsync", "mkdir", "link", "rename", "setxattr", "symlink", "open",
)  # fmt: skip
"""Calls that can fail on a full disk."""
LASTING = ("write", "copy_file_range", "mkdir", "link", "symlink")
"""Calls that keep failing while the disk is full; a rename or an open may succeed."""
MARK = ".hermes-doctor-"
STRANGER = 12345
"""The id of a user that does not exist."""


@dataclass(frozen=True)
class Call:
    """One call that changes a disk: the function, the path if it has one, and the caller."""

    name: str
    path: str
    caller: str
    effect: bool
    """Whether it changed anything that remains if the process is killed right after it."""


@dataclass(frozen=True)
class Ended:
    """The result of a command; a negative code is the signal that killed it."""

    code: int
    out: str
    err: str
    calls: tuple[Call, ...]

    @property
    def json(self) -> Any:
        """Its output, parsed as JSON."""
        return json.loads(self.out)

    @property
    def said(self) -> str:
        """All its output as one line."""
        return " ".join((self.out + " " + self.err).split())


@dataclass
class Cut:
    """A failure, and the call at which it happens."""

    at: int
    how: str
    """kill, half (kill in the middle of a write), ENOSPC, EIO, or the name of a signal.

    edit:PATTERN and replace:PATTERN edit a file at that moment, as another program would;
    run:WORDS runs a program (JSON) and waits for it.
    no-renameat2 disables the exchange of names for the whole run, as on many file systems.
    """
    only: Sequence[str] = ()
    """Count only these calls; empty means all."""
    lasting: bool = False
    """The disk stays full: all later calls that need space fail as well."""
    counted: int = 0


class Server(warm_server.Server):
    """The warm process, which interrupts its forks at the requested calls."""

    def __call__(
        self,
        *args: str | Path,
        cuts: Sequence[Cut] = (),
        env: Mapping[str, str] | None = None,
        settings: Mapping[str, object] = {},
    ) -> Ended:
        """Run the command once; `settings` are names in modules, such as limits."""
        said = self.ask(
            *map(str, args),
            env=support.environ({"COLUMNS": "100", **(env or {})}),
            cwd=ROOT,
            timeout=120,
            cuts=[vars(cut) for cut in cuts],
            settings=dict(settings),
        )
        calls = tuple(Call(*call) for call in json.loads(said["notes"] or "[]"))
        return Ended(said["code"], said["out"], said["err"], calls)


@functools.cache
def serving(module: str = "tests.helpers.crash_server", *, alone: bool = False) -> Server:
    """Return a warm process for all tests of this one; with `alone`, it sees no other processes."""
    server = Server(module, alone=alone)
    atexit.register(server.close)
    return server


# -- in the warm process -------------------------------------------------------------------


def _as_root() -> None:
    """Let root work in a home of another user as with a vault of root's: its calls are counted.

    It then drops its rights for each call; in another process, nobody would count them.
    """
    from hermes_doctor.cli import separate_look

    setattr(separate_look, "owner_of", lambda _: None)  # noqa: B010 (mypy)


def sabotage(asked: warm_server.Asked, notes: Path) -> None:
    """Install the failures of one fork."""
    if asked["args"][0] != "check":  # which writes nothing
        _as_root()
    Saboteur([Cut(**cut) for cut in asked["cuts"]], notes).install()


@dataclass
class Saboteur:
    """Count the calls, and interrupt the process at the requested one."""

    cuts: Sequence[Cut]
    log: Path
    calls: list[tuple[str, str, str, bool]] = field(default_factory=list)

    def install(self) -> None:
        """Wrap the functions of `os`, and SQLite's opening of files."""
        for name in CALLS:
            if hasattr(os, name):
                setattr(os, name, self._wrapped(name, getattr(os, name)))
        connect, leave = sqlite3.connect, os._exit

        def connected(*args: Any, **options: Any) -> Any:
            if str(args[0]) != ":memory:" and "mode=ro" not in str(args[0]):
                self._before("connect", connect, args)
            return connect(*args, **options)

        own = os.getpid()

        def left(status: int) -> NoReturn:
            if os.getpid() == own:  # a child has counted only its own calls
                self.log.write_text(json.dumps(self.calls))
            leave(status)

        def renamed(old: Path, new: Path, flags: int) -> bool:
            name = "exchange" if flags == renameat2.EXCHANGE else "rename"
            number = self._before(name, real_call, (old, new, flags))
            if any(cut.how == "no-renameat2" for cut in self.cuts):
                self.calls[number] = (*self.calls[number][:3], False)
                return False
            return real_call(old, new, flags)

        real_call = renameat2.call
        renameat2.call = renamed
        sqlite3.connect = connected
        os._exit = left

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if name == "open" and not args[1] & (os.O_CREAT | os.O_TRUNC):
                return real(*args, **options)
            number = self._before(name, real, args)
            if name in ("fsync", "fdatasync"):
                return None  # written data survives a kill; skipping it is faster
            try:
                return real(*args, **options)
            except FileNotFoundError:
                self.calls[number] = (*self.calls[number][:3], False)
                raise

        return call

    def _before(self, name: str, real: Callable[..., Any], args: tuple[Any, ...]) -> int:
        caller = sys._getframe(2).f_globals.get("__name__", "")
        path = str(args[0]) if not isinstance(args[0], int) else ""
        number = len(self.calls)
        self.calls.append((name, path, caller, name not in ("fsync", "fdatasync")))
        for cut in self.cuts:
            if not cut.only or name in cut.only:
                cut.counted += 1
                late = cut.lasting and cut.counted > cut.at and name in LASTING
                if cut.counted == cut.at + 1 or late:
                    _do(cut.how, real, args, path)
        return number


def _do(how: str, real: Callable[..., Any], args: tuple[Any, ...], path: str) -> None:
    """Cause the failure."""
    if how == "no-renameat2":
        return
    if how.startswith("run:"):
        subprocess.run(json.loads(how.removeprefix("run:")), check=False)
        return
    if how.startswith(("edit:", "replace:")):
        _edit(*how.split(":", 1))
        return
    if how in ("kill", "half"):
        if how == "half":
            real(args[0], bytes(args[1])[: len(args[1]) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    elif how.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, how))
    else:
        number = getattr(errno, how)
        raise OSError(number, os.strerror(number), path or None)


def _edit(how: str, pattern: str) -> None:
    """Edit a file in place or by replacing it, as another program would."""
    folder, _, name = pattern.rpartition("/")
    [found] = [one for one in Path(folder).iterdir() if fnmatch.fnmatch(one.name, name)]
    target = found if how == "edit" else found.with_name("editor.tmp")
    text = found.read_bytes()
    fd = _OPEN(target, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    _WRITE(fd, EDIT if how == "edit" else text + EDIT)
    os.close(fd)
    if how == "replace":
        _RENAME(target, found)


EDIT = b"# edited by somebody else\n"
_OPEN, _WRITE, _RENAME = os.open, os.write, os.rename
"""The original functions, which are not counted."""


# -- homes ---------------------------------------------------------------------------------


def sick(home: Path) -> Path:
    """Create a small home with a problem for every kind of change, one in a live database."""
    support.healthy(home)
    support.put(home / "config.yaml.bak", support.CONFIG)
    os.utime(home / "config.yaml.bak", (1_700_000_000, 1_700_000_000))
    support.put(home / "config.yaml", support.CONFIG.replace("  default:", "\tdefault:"), 0o640)
    support.put(home / ".env", b"\xef\xbb\xbf" + support.ENV.encode(), 0o644)
    support.put(home / "auth.json", '{"providers": {}}\n', 0o644)
    for name in ("state.db", "kanban.db"):
        (home / name).unlink()
    support.database(home / "state.db", "CREATE TABLE notes (content TEXT)")
    logged(home / "state.db", "INSERT INTO notes VALUES ('only in the log')")
    support.clobber(home / "state.db")
    lacking(home / "kanban.db")
    for n, path in enumerate(sorted(home.iterdir())):
        if path.is_file() and path.name != "config.yaml.bak":
            os.utime(path, ns=(1_750_000_000_000_000_123 + n, 1_750_000_000_000_000_123 + n))
    return home


def lacking(path: Path) -> Path:
    """Create a kanban database without `tasks.session_id`."""
    return support.board(path, without=(("tasks", "session_id"),))


def logged(path: Path, *statements: str) -> None:
    """Run statements that stay in the write-ahead log, as after a crash of the writer."""
    work = path.with_name("work.db")
    shutil.copy(path, work)
    with contextlib.closing(sqlite3.connect(work, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA wal_autocheckpoint=0")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for statement in statements:
            db.execute(statement)
        for suffix in ("", "-wal", "-shm"):  # copy while open: closing would checkpoint the log
            shutil.copy(f"{work}{suffix}", f"{path}{suffix}")
    for left in path.parent.glob("work.db*"):
        left.unlink()
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").chmod(0o600)


def clone(source: Path, target: Path) -> Path:
    """Copy a tree with its owners, modes, times and symlinks."""
    shutil.copytree(source, target, symlinks=True)
    if os.geteuid() == 0:
        for base, folders, files in os.walk(source):
            for name in (".", *folders, *files):
                old = Path(base, name)
                st = old.lstat()
                new = target / old.relative_to(source)
                os.chown(new, st.st_uid, st.st_gid, follow_symlinks=False)
    return target


def chown(tree: Path, uid: int = STRANGER) -> Path:
    """Change the owner of a whole tree."""
    os.chown(tree, uid, uid)
    for path in tree.rglob("*"):
        os.chown(path, uid, uid, follow_symlinks=False)
    return tree


def state(
    home: Path, *, times: bool = False, vault: bool = False, leftovers: bool = True
) -> dict[str, tuple[Any, ...]]:
    """Return kind, mode, owner, content and, if asked, all times of everything in a home."""
    found: dict[str, tuple[Any, ...]] = {}
    for base, folders, files in os.walk(home):
        here = Path(base)
        if not vault and here == home / "backups":
            folders[:] = [name for name in folders if name != "doctor"]
        for path in (here, *(here / name for name in files)):
            name = str(path.relative_to(home))
            if name in (".", "backups") and not times:
                continue
            if not leftovers and MARK in name:
                continue
            st = path.lstat()
            content = None
            if stat.S_ISLNK(st.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(st.st_mode):
                fd = os.open(path, os.O_RDONLY | os.O_NOATIME)
                with open(fd, "rb") as file:
                    content = hashlib.sha256(file.read()).hexdigest()
            facts: tuple[Any, ...] = (oct(st.st_mode), st.st_uid, st.st_gid, content)
            if times:
                facts += (st.st_mtime_ns, st.st_ctime_ns, st.st_ino)
                if not path.is_dir():
                    facts += (st.st_atime_ns,)
            found[name] = facts
    return found


def modified(home: Path) -> dict[str, int]:
    """Return the modification time of every file outside the vault."""
    return {
        str(path.relative_to(home)): path.lstat().st_mtime_ns
        for path in home.rglob("*")
        if path.is_file() and not path.is_relative_to(home / "backups")
    }


def strangers(home: Path) -> list[str]:
    """Return the paths that the owner of the home does not own."""
    st = home.stat()
    owner = (st.st_uid, st.st_gid)
    return [
        str(path.relative_to(home))
        for path in home.rglob("*")
        if (path.lstat().st_uid, path.lstat().st_gid) != owner
    ]


def wide(vault: Path) -> list[str]:
    """Return the paths in a vault that other users can access."""
    found = []
    for path in [vault, *vault.rglob("*")] if vault.exists() else []:
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode != (0o700 if path.is_dir() else 0o600) and not path.is_symlink():
            found.append(f"{path.relative_to(vault)} {mode:04o}")
    return found


def leftovers(home: Path) -> list[str]:
    """Return what a finished run must not leave: staged, kept and partial files."""
    found = []
    for path in home.rglob("*"):
        half = path.is_relative_to(home / "backups") and path.name.endswith((".partial", ".new"))
        if MARK in path.name or half:
            found.append(str(path.relative_to(home)))
    return found


def journals(home: Path) -> list[dict[str, Any]]:
    """Return the journals of a home, oldest first."""
    found = [json.loads(p.read_bytes()) for p in home.glob("backups/doctor/runs/*/run.json")]
    return sorted(found, key=lambda journal: str(journal["started_at"]))


FINAL = ("done", "partly", "rolled-back", "abandoned", "undone")

if __name__ == "__main__":
    warm_server.serve(sabotage)
