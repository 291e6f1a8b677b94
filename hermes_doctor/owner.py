"""Work that root does for another user with that user's rights, in a child of its own.

SQLite opens files by path and makes others beside them; under the owner's rights it can do
nothing that the owner could not do himself, and leaves no file of root's behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from hermes_doctor.model import CannotFix, CouldNotLook, Trouble

Act = Callable[[], str]
_EXPECTED: dict[str, type[Exception]] = {
    kind.__name__: kind for kind in (CannotFix, CouldNotLook, Trouble)
}


def of_folder(path: Path) -> tuple[int, int]:
    """Who owns the folder that a path lies in."""
    st = os.stat(path.parent)
    return st.st_uid, st.st_gid


def with_rights_of_owner(path: Path, act: Act) -> str:
    """Run `act`, which opens `path`, as the owner of its folder where we are root for another."""
    if not _for_another(path):
        return act()
    with child(path, act) as stream:
        return answer(stream)


def _for_another(path: Path) -> bool:
    """Whether we are root and the folder of the path is one that another user can reach."""
    uid, gid = of_folder(path)
    if os.geteuid() != 0 or uid == 0:
        return False
    for folder in path.absolute().parents:
        st = os.stat(folder)
        if st.st_uid == 0 and st.st_gid != gid and not st.st_mode & 0o001:
            return False  # root's own, closed to him: neither can he tamper with what lies there
    return True


@contextmanager
def child(path: Path, act: Act) -> Iterator[BinaryIO]:
    """A process that does `act` with the rights of the owner of a path; what it says.

    It is gone when the context ends, and when we are.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _run(writing, path, act)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as stream:
            yield stream
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def answer(stream: BinaryIO) -> str:
    """How a child ended: its result, or the failure that it met."""
    kind, _, text = stream.readline().decode("utf-8", "replace").rstrip("\n").partition(" ")
    if kind == "done":
        return text
    if not kind:
        raise CannotFix("the work under the owner's rights was cut off")
    raise _EXPECTED.get(kind, CannotFix)(text)


def _run(writing: int, path: Path, act: Act) -> None:
    """The child's life; never returns."""

    def say(word: str, text: str) -> None:
        with os.fdopen(writing, "wb") as stream:
            stream.write(f"{word} {' '.join(text.split())}\n".encode())

    try:
        if _for_another(path):
            uid, gid = of_folder(path)
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)
        _die_with_parent()
        os.umask(0o077)
        say("done", act())
    except BaseException as error:  # noqa: BLE001
        expected = type(error).__name__ in _EXPECTED
        text = str(error) if expected else f"it failed ({type(error).__name__})"
        with contextlib.suppress(OSError):
            say(type(error).__name__ if expected else "CannotFix", text)
    finally:
        os._exit(0)


def _die_with_parent() -> None:
    """A child whose parent was killed must not go on writing to what is then put in order."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
