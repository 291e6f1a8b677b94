"""Records at which files and folders an examination looks, to tell later whether one has changed.

A watch records in the process of a round, which then ends. Python reports each file that is opened
and each folder that is listed, also missing ones (`sys.addaudithook`). It reports no `stat`, so the
few functions of `os` that look at a path without opening it are replaced here.

A file has changed when its inode, mode, owner, size or one of its times has; a folder, when its
inode, mode or owner has, or the names in it if they were read. `/proc` and `/sys` are left out,
because nothing there has such times: `operations/watch/what_changed.py` asks for it again.
"""

from __future__ import annotations

import itertools
import math
import os
import stat
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from hermes_doctor.core.system.remembered_files import RECENT

State = tuple[int, ...]
"""What a path was: numbers of which one changes when the path does."""
MOST = 5_000
"""So many paths are compared; with more, the home is always examined."""
MOST_CHARACTERS = 500_000
"""The same for the characters of all paths: a round passes them on to the next."""
MOST_NAMES = 20_000
"""So many names in a folder are compared; of a larger folder, its times."""
NAMES_IN = "names in "
"""Before the path of a folder: the state is that of the names in it."""
BEATS = ("gateway.heartbeat", "ticker_heartbeat", "ticker_last_success")
"""Files that a gateway writes all the time; `live_facts` tells whether they are too old."""
_WITHOUT_TIMES = ("/proc/", "/sys/")
_UNSTABLE = -1
"""In the place of a time that a later change may leave as it is."""
_lstat, _stat = os.lstat, os.stat


class Recorder:
    """What an examination depends on."""

    def __init__(self) -> None:
        import hashlib  # noqa: F401 (slow to load; `_state_of_names` must find it loaded)

        self.states: dict[str, State] = {}
        """By path: its state just before it was looked at first."""
        self.until = math.inf
        """The moment from which on the same files may mean something else."""
        self._characters = 0
        self._unknown = False
        """Whether the examination looked at a path that is not known."""

    def is_complete(self) -> bool:
        """Whether everything is in `states`."""
        few = len(self.states) <= MOST and self._characters <= MOST_CHARACTERS
        return few and not self._unknown

    def replacing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does what one of `os` does, and records the path."""

        def look(path: Any, *args: Any, **options: Any) -> Any:
            self._record(path, folder=options.get("dir_fd"))
            return real(path, *args, **options)

        return look

    def hear(self, event: str, args: tuple[Any, ...]) -> None:
        """Record a file that is opened, or a folder whose names are read."""
        if event == "open":
            flags = args[2] if isinstance(args[2], int) else 0
            self._record(args[0], names=bool(flags & os.O_DIRECTORY))
        elif event in ("os.listdir", "os.scandir"):
            self._record(args[0], names=True)

    def _record(self, path: Any, *, folder: int | None = None, names: bool = False) -> None:
        """Record a path, below an open folder if one is given."""
        if path is None or isinstance(path, int):
            return
        name = os.fsdecode(path)
        if folder is not None and not name.startswith("/"):
            try:
                name = f"{os.readlink(f'/proc/self/fd/{folder}')}/{name}"
            except OSError:  # a system without /proc
                self._unknown = True
                return
        if not name.startswith("/") or name.startswith(_WITHOUT_TIMES):
            return
        for key in (name, NAMES_IN + name) if names else (name,):
            if key not in self.states and self.is_complete():
                self._characters += len(key)
                self.states[key] = ()  # so that what `state_of` does is not recorded
                self.states[key] = state_of(key)


_recorder: Recorder | None = None


def record() -> Recorder:
    """Record everything that this process looks at from now on until it ends."""
    global _recorder
    _recorder = recorder = Recorder()
    for name in ("stat", "lstat", "access", "readlink", "open"):
        setattr(os, name, recorder.replacing(getattr(os, name)))
    sys.addaudithook(recorder.hear)
    return recorder


def note_moment(moment: float) -> None:
    """Note a moment from which on the same files may mean something else."""
    if _recorder is not None:
        _recorder.until = min(_recorder.until, moment)


def find_change(states: Mapping[str, State]) -> str | None:
    """Return a path whose state is another one; None if none has changed."""
    return next((path for path, before in states.items() if not _is_same(path, before)), None)


def _is_same(path: str, before: State) -> bool:
    if path.startswith(NAMES_IN) and len(before) > 1 and before[0] != _UNSTABLE:
        st = _status(path.removeprefix(NAMES_IN), _stat)
        if isinstance(st, os.stat_result) and st.st_ctime_ns == before[0]:
            return True  # so the names need not be read
    now = state_of(path)
    if path.startswith(NAMES_IN) and len(now) == len(before) > 1:
        return now[1] == before[1]
    return now == before and now[-1] != _UNSTABLE


def state_of(path: str) -> State:
    """Return the state of a path, or of the names in a folder."""
    if path.startswith(NAMES_IN):
        return _state_of_names(path.removeprefix(NAMES_IN))
    st = _status(path, _lstat)
    if not isinstance(st, os.stat_result):
        return (st,)
    if stat.S_ISLNK(st.st_mode):
        return *_numbers(path, st), *state_of(os.path.realpath(path))
    return _numbers(path, st)


def _status(path: str, look: Callable[[str], os.stat_result]) -> os.stat_result | int:
    """Return the result of stat or lstat, or the number of the error."""
    try:
        return look(path)
    except OSError as error:
        return error.errno or 0
    except ValueError:
        return 0


def _numbers(path: str, st: os.stat_result) -> State:
    """Return what shows that something at a path has changed."""
    place = st.st_dev, st.st_ino, st.st_mode, st.st_uid, st.st_gid
    if stat.S_ISREG(st.st_mode) and path.endswith(BEATS):
        return place[2:]  # each time it is another file
    if not stat.S_ISREG(st.st_mode):
        return place
    return *place, st.st_size, st.st_mtime_ns, _UNSTABLE if _is_recent(st) else st.st_ctime_ns


def _is_recent(st: os.stat_result) -> bool:
    """Whether the next change of a file may get the same time as the last one."""
    return st.st_ctime > time.time() - RECENT


def _state_of_names(folder: str) -> State:
    import hashlib

    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in itertools.islice(entries, MOST_NAMES + 1))
        st = _stat(folder)
    except OSError as error:
        return (error.errno or 0,)
    if len(names) > MOST_NAMES:
        return _UNSTABLE, st.st_ctime_ns
    packed = "\0".join(names).encode(errors="surrogateescape")
    digest = int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest())
    return _UNSTABLE if _is_recent(st) else st.st_ctime_ns, digest
