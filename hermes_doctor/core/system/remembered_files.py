"""At which files an examination looks, and what a watch remembers of them from round to round.

A watch records in the process of a round, which then ends. Python reports each file that is opened
and each folder that is listed, also missing ones (`sys.addaudithook`). It reports no `stat`, so the
few functions of `os` that look at a path without opening it are replaced here.

A file has changed when its inode, mode, owner, size or one of its times has; a folder, when its
inode, mode or owner has, or the names in it if they were read. A time that is almost present proves
nothing, because the next change may get the same one. `/proc` and `/sys` are left out, because
nothing there has such times: `operations/watch/what_changed.py` asks for it again.
"""

from __future__ import annotations

import itertools
import math
import os
import stat
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Identity = tuple[int, ...]
"""Which file it was, with its size and its times."""
RECENT = 2.0
"""Seconds within which two changes of a file may have the same time."""


class RememberedFiles(Generic[T]):
    """What was found in files, by name; at most `most` of them."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.entries: dict[str, tuple[Identity, T]] | None = None
        """None while nothing is remembered."""
        self._shared: dict[str, tuple[Identity, T]] = {}
        """What the watch knows; the process of a round need not tell it again."""

    def remember(self) -> None:
        """Remember from now on."""
        self.entries = {} if self.entries is None else self.entries

    def forget(self) -> None:
        """Remember nothing any more."""
        self.entries = None

    def known(self) -> dict[str, tuple[Identity, T]]:
        """What is remembered, for another process."""
        return {} if self.entries is None else dict(self.entries)

    def news(self) -> dict[str, tuple[Identity, T]]:
        """What the watch does not know yet; it may keep the rest, which no file fits any more."""
        return {
            name: one for name, one in self.known().items() if self._shared.get(name) is not one
        }

    def adopt(self, news: Mapping[str, tuple[Identity, T]]) -> None:
        """Remember what another process has found out."""
        if self.entries is not None:
            older = {name: one for name, one in self.entries.items() if name not in news}
            self.entries = dict([*older.items(), *news.items()][-self.most :])
            self._shared = dict(self.entries)


_facts: RememberedFiles[Any] = RememberedFiles(100)
"""By kind and path: which file it was, and what was found."""
remember, forget, news, adopt = _facts.remember, _facts.forget, _facts.news, _facts.adopt


def ask(kind: str, fd: int, place: object, read: Callable[[], Any]) -> Any:
    """Return what `read` finds in an open file, a plain value; do not read it again if known."""
    if _facts.entries is None:
        return read()
    name, st = f"{kind} {place}", os.fstat(fd)
    identity = (st.st_dev, st.st_ino, st.st_size, st.st_mtime_ns, st.st_ctime_ns)
    seen, value = _facts.entries.get(name, (None, None))
    if seen == identity:
        return value
    value = read()
    _facts.entries.pop(name, None)
    if max(st.st_mtime, st.st_ctime) < time.time() - RECENT:
        _facts.entries[name] = (identity, value)
    return value


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
"""Files that a gateway writes all the time; `what_changed` tells whether they are too old."""
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
