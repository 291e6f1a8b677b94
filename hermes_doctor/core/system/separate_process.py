"""Do the work in a home of another user in a process that has become that user permanently.

The owner of a home can put a symlink, a FIFO or another folder in the place of anything in it, at
any moment. Root must therefore not open a single file there. So root splits in two, as OpenSSH
does:

- The *child* becomes the owner of the home before it opens the first file: user, groups and
  capabilities, with no way back. It does the work and sends the result. Whatever it is led to, it
  reaches only what the owner reaches.
- The *parent* stays root and opens nothing in the home. It waits, and does for the child what is
  on a short, fixed list of actions (`diagnosis/probes/root_actions.py`, and for repairs
  `repair/gateway/root_actions.py`), such as asking Docker. It takes no code and no path from the
  child except as an action allows.

Both talk over a pair of sockets, in messages of JSON, which can only become plain values in the
parent (`transfer`).
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.core.system import closed_folders, files, limits, root_parent, transfer
from hermes_doctor.core.system.closed_folders import LentFolder
from hermes_doctor.core.system.privileges import Privileges
from hermes_doctor.core.system.signals import PassedSignals, delay_signals, held_back

T = TypeVar("T")
Action = Callable[..., Any]
"""Done by root for the child; takes and returns what JSON can express, or returns an open file."""
STILL = 5.0
"""Seconds of silence after which root looks whether the child was stopped or takes too long."""
UNKILLABLE = 5.0
"""Seconds after which a killed child counts as hanging in the kernel."""
_hanging: list[int] = []
"""Children that were killed and have not ended."""
_EXPECTED: dict[str, type[BaseException]] = {
    kind.__name__: kind for kind in (CannotFix, CouldNotLook, Trouble, root_parent.NeedsRoot)
}


class OpenFile(NamedTuple):
    """What an action returns to pass an open file to the child, which gets its own descriptor."""

    fd: int


class _Root:
    """The child's line to the parent."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self.guard = threading.Lock()

    def ask(self, action: str, given: list[Any], descriptors: Sequence[int]) -> Any:
        """Let root do an action, with these open files; its expected errors are raised here."""
        # An answer that nobody waits for any more would be taken for that to the next question.
        with self.guard, _undisturbed():
            transfer.send(self.line, json.dumps([action, given]).encode(), descriptors)
            message, opened = transfer.receive(self.line)
        answer = json.loads(message)
        if answer["error"]:
            raise _EXPECTED.get(answer["error"], CouldNotLook)(answer["why"])
        return opened[0] if opened else answer["result"]


def _undisturbed() -> contextlib.AbstractContextManager[None]:
    main = threading.current_thread() is threading.main_thread()
    return delay_signals() if main else contextlib.nullcontext()


def run_as(
    user: Privileges,
    work: Callable[[], T],
    actions: Mapping[str, Action],
    modules: tuple[str, ...] = (),
    limit: float = math.inf,
    *,
    writes: bool = False,
    keep: Sequence[int] = (),
    closed: Path | None = None,
    lent: Sequence[LentFolder] = (),
) -> T:
    """Return what `work` returns in a child that has become the user; serve its actions meanwhile.

    The result consists of the values of `hermes_doctor.core.model`, and of the `modules`, and of
    plain values. Everything that the work imports must be loaded already, unless the user may read
    it. Raise CouldNotLook if it takes longer than `limit` seconds. If the work `writes`, the
    signals that ask this process to end are passed on, and the child ends by itself. It keeps the
    open files in `keep`. A home that is `closed` to the user is shown to the child, and
    folders of root's are `lent` to it.
    """
    _refuse_another()
    _flush()
    clock = limits.Stopwatch()
    try:
        ours, theirs = socket.socketpair()
    except OSError as error:
        raise _not_started(error) from None
    signals = PassedSignals() if writes else None
    pid = 0
    try:
        with ours, held_back() as let_in:
            parent, pid = os.getpid(), _fork(theirs)
            if pid == 0:
                ours.close()
                begin = lambda: _begin(signals, let_in)  # noqa: E731
                _live(theirs, user, work, parent, modules, keep, closed, lent, begin)
            theirs.close()
            if signals:
                signals.send_to(pid)
            let_in()
            ours.settimeout(STILL)
            result = _serve(ours, actions, pid, lambda: _refuse_late(clock, limit))
    except (transfer.CutOff, ConnectionError, TimeoutError) as error:
        if signals:
            signals.end_too()
        raise CouldNotLook(transfer.CUT_OFF) from error
    finally:
        if pid:
            if signals:
                signals.stop_sending()
            _end(pid)
        if signals:
            signals.restore()
    try:
        made: T = transfer.parse(result, modules)
    except ValueError:
        raise CouldNotLook("the result of the separate process is not valid") from None
    return made


def _fork(line: socket.socket) -> int:
    try:
        return os.fork()
    except OSError as error:
        line.close()
        raise _not_started(error) from None


def _begin(signals: PassedSignals | None, let_in: Callable[[], object]) -> None:
    """Let the child handle signals as the work does."""
    if signals:
        signals.forget()
    let_in()


def _not_started(error: OSError) -> CouldNotLook:
    """Say that the system, such as a container or a hardened service, forbids the process."""
    return CouldNotLook(
        "the home belongs to another user, and the process that works as this user could not "
        "be started ({reason})",
        reason=os.strerror(error.errno or 0).lower(),
    )


def _refuse_late(clock: limits.Stopwatch, limit: float) -> None:
    if clock.read() > limit:
        raise CouldNotLook("the check took longer than {seconds:g} s", seconds=limit)


def _refuse_stopped(pid: int) -> None:
    """Raise CouldNotLook if its user stopped the child with a signal, as he may at any time."""
    if _is_stopped(pid):
        time.sleep(0.5)  # after Ctrl-Z, both processes go on together
        if _is_stopped(pid):
            raise CouldNotLook("the process that worked in the home was stopped")


def _is_stopped(pid: int) -> bool:
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] in ("T", "t")
    return False


def _end(pid: int) -> None:
    """Kill the child, and wait until it is gone, unless it hangs in the kernel."""
    with contextlib.suppress(PermissionError):  # a container may take this right; it ends by itself
        os.kill(pid, signal.SIGKILL)  # its user may have stopped it, even now
    until = time.monotonic() + UNKILLABLE
    while os.waitpid(pid, os.WNOHANG)[0] != pid:
        if time.monotonic() > until:
            _hanging.append(pid)
            return
        time.sleep(0.001)


def _refuse_another() -> None:
    """Raise while an earlier child hangs, so that they do not pile up."""
    _hanging[:] = [pid for pid in _hanging if os.waitpid(pid, os.WNOHANG)[0] != pid]
    if _hanging:
        raise CouldNotLook("the disk does not answer: an earlier check still waits for it")


def _serve(
    line: socket.socket, actions: Mapping[str, Action], pid: int, refuse_late: Callable[[], None]
) -> bytes:
    """Do the child's actions until it sends its result, or is refused."""

    def when_still() -> None:
        refuse_late()
        _refuse_stopped(pid)

    while True:
        message, descriptors = transfer.receive(line, when_still)
        try:
            if message[:1] == b"R":
                return message[1:]
            if message[:1] == b"E":
                name, why = _pair(message[1:])
                raise _EXPECTED.get(name, CouldNotLook)(str(why))
            refuse_late()
            answer = _do(actions, message, descriptors)
        finally:
            for fd in descriptors:
                os.close(fd)
        opened = answer["result"]
        if isinstance(opened, OpenFile):
            try:
                transfer.send(line, json.dumps(answer).encode(), opened)
            finally:
                os.close(opened.fd)
        else:
            transfer.send(line, json.dumps(answer).encode())


def _do(
    actions: Mapping[str, Action], message: bytes, descriptors: Sequence[int]
) -> dict[str, Any]:
    """Do one action. Open files are passed apart from the numbers that the child may write."""
    name, given = _pair(message)
    answer: dict[str, Any] = {"error": "", "why": "", "result": None}
    try:
        if name not in actions:
            raise CouldNotLook("root does not do {action}", action=name)
        files = {"descriptors": tuple(descriptors)} if descriptors else {}
        answer["result"] = actions[name](*given, **files)
    except (CannotFix, CouldNotLook, Trouble) as why:
        answer |= {"error": type(why).__name__, "why": str(why)}
    except Exception as error:  # noqa: BLE001 (a wrong request must not end the parent)
        answer |= {"error": "CouldNotLook", "why": f"root could not do it ({error})"}
    return answer


def _pair(message: bytes) -> tuple[str, Any]:
    """Return the two parts of a message; CouldNotLook if it has others."""
    try:
        name, rest = json.loads(message)
    except (ValueError, TypeError, RecursionError) as error:
        raise _not_valid(error) from None
    return str(name), rest


def _not_valid(error: Exception) -> CouldNotLook:
    return CouldNotLook("the result of the separate process is not valid ({error})", error=error)


def _live(
    line: socket.socket,
    user: Privileges,
    work: Callable[[], Any],
    parent: int,
    modules: tuple[str, ...],
    keep: Sequence[int],
    closed: Path | None,
    lent: Sequence[LentFolder],
    begin: Callable[[], None],
) -> NoReturn:
    """Do the work in the child; never returns."""
    try:
        begin()
        signal.set_wakeup_fd(-1)  # a watch has one
        files.close_others(line.fileno(), *keep)
        closed_folders.show(user, closed, lent)
        become_permanently(user, parent)
        root_parent.use(_Root(line).ask)
        result = transfer.dump(work(), modules)
        _flush()
        transfer.send(line, b"R" + result)
    except BaseException as error:  # noqa: BLE001 (the parent says why)
        expected = type(error).__name__ in _EXPECTED
        why = str(error) if expected else _describe(error)
        name = type(error).__name__ if expected else "CouldNotLook"
        with contextlib.suppress(OSError):
            _flush()
            transfer.send(line, b"E" + json.dumps([name, why]).encode())
    finally:
        os._exit(0)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _describe(error: BaseException) -> str:
    import traceback

    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = f" in {last[0].filename.rpartition('/')[2]}:{last[0].lineno}" if last else ""
    return f"it failed ({type(error).__name__}: {error}{place})"


_SECRET_NAME = pattern(
    r"KEY|TOKEN|SECRET|PASS|CRED|AUTH|COOKIE|^(AWS|AZURE|B2|GOOGLE|OS|RESTIC|RCLONE|ST)_|(?i:_proxy)$"
)
"""Variables of root's that may hold a secret, such as those for restic."""
_NO_NEW_PRIVS, _SET_DUMPABLE, _DEATH_SIGNAL = 38, 4, 1


def become_permanently(user: Privileges, parent: int) -> None:
    """Become the user with no way back, and end with the parent.

    The user may neither trace this process nor read its memory, which has what root has loaded.
    """
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    user.become()  # the kernel takes all capabilities away
    library.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    library.prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    library.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    if 0 in os.getresuid():
        raise CouldNotLook("could not give up root's rights")
    for name in {*os.environ} & {"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"}:  # root's own
        del os.environ[name]
    for name in filter(_SECRET_NAME.search, [*os.environ]):  # programs would show it to the user
        del os.environ[name]
    files.keep_user_home()
    os.environ["HOME"] = _folder_of(user.uid)
    os.chdir("/")


def _folder_of(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_dir
    except KeyError:
        return "/"
