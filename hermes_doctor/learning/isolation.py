"""Run scripts under the interpreter of a Hermes: no network, no settings of this machine.

Each script gets an empty home of its own. All are stopped when the time is over, when one fails,
and when this process is interrupted. A busy machine gets more time, but at most another minute.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from hermes_doctor.lazy import EMPTY, NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import Trouble
from hermes_doctor.system.privileges import Privileges
from hermes_doctor.system.time_limits import Stopwatch

BOOT = r"""
import contextlib, io, json, os, resource, socket, sys, types
given = json.load(sys.stdin)
resource.setrlimit(resource.RLIMIT_FSIZE, (268435456, 268435456))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
with contextlib.suppress(Exception):
    import ctypes
    uid, gid = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None)
    libc.prctl(1, 9)
    if libc.unshare(0x40000000) and not libc.unshare(0x50000000):
        for name, line in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(line)
def refuse(*args, **options):
    raise OSError(101, "hermes-doctor learn works without network")
connect = socket.socket.connect
def local(self, address):
    return connect(self, address) if self.family == socket.AF_UNIX else refuse()
socket.socket.connect = socket.socket.connect_ex = local
socket.getaddrinfo = socket.gethostbyname = socket.gethostbyname_ex = refuse
for name, source in given["modules"].items():
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        path = ".".join(parts[:length])
        if path not in sys.modules:
            sys.modules[path] = types.ModuleType(path)
            sys.modules[path].__path__ = []
    exec(compile(source, name, "exec"), sys.modules[name].__dict__)
sys.stdin = io.StringIO(json.dumps(given["question"]))
sys.argv = ["lesson", *given["words"]]
exec(compile(given["script"], "lesson", "exec"), {"__name__": "__main__"})
"""
"""Lets the script end with this process, without network: by a namespace of its own where the
system allows that, and by Python's sockets."""
MOST = 16 * 1024 * 1024
"""The most bytes of one answer."""
_PAUSE = 0.05
_ROOM = 256 * 1024 * 1024


class Lesson(NamedTuple):
    """A script, the words after its name, and what it reads from its standard input."""

    script: str
    words: tuple[str, ...] = ()
    question: Any = None
    modules: Mapping[str, str] = EMPTY
    """The modules of this project that the script needs, as text."""


class DoesNotStart(Trouble):
    """Says why a Hermes gave no answer."""


def ask_all(
    python: Path,
    lessons: Mapping[str, Lesson],
    *,
    seconds: float,
    user: Privileges | None = None,
    at_once: int | None = None,
    heard: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Return the answer to each lesson; `heard` is told the name of each one that has answered."""
    with _scratch(user) as folder:
        return _Class(python, lessons, folder, user).ask(seconds, at_once or _processors(), heard)


class _Class:
    """The running scripts of one call."""

    def __init__(
        self, python: Path, lessons: Mapping[str, Lesson], folder: Path, user: Privileges | None
    ) -> None:
        self.python, self.lessons, self.folder, self.user = python, lessons, folder, user
        self.running: dict[str, tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes]]] = {}

    def ask(self, seconds: float, at_once: int, heard: Callable[[str], None]) -> dict[str, Any]:
        spent = Stopwatch()
        waiting, answers = list(self.lessons), {}
        try:
            while waiting or self.running:
                while waiting and len(self.running) < at_once:
                    self._start(waiting.pop(0))
                for name, (process, out, err) in list(self.running.items()):
                    if process.poll() is not None:
                        del self.running[name]
                        answers[name] = _answer(process.returncode, out, err)
                        heard(name)
                if spent.read() > seconds:
                    raise DoesNotStart(
                        text("it did not answer within {seconds:g} s", seconds=seconds)
                    )
                time.sleep(_PAUSE)
        finally:
            self._stop()
        return answers

    def _start(self, name: str) -> None:
        lesson = self.lessons[name]
        place = self.folder / name.replace("/", "-")
        home = place / ".hermes"
        _make_place(place, (home.name, "tmp"), self.user)
        given = {
            **{"script": lesson.script, "modules": dict(lesson.modules)},
            **{"words": lesson.words, "question": lesson.question},
        }
        become: dict[str, Any] = {}
        if self.user:
            become = {
                **{"user": self.user.uid, "group": self.user.gid},
                "extra_groups": list(self.user.groups),
            }
        out, err = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115 (_answer closes)
        with tempfile.TemporaryFile() as question:
            question.write(json.dumps(given).encode())
            question.seek(0)
            try:
                process = subprocess.Popen(
                    [str(self.python), "-I", "-B", "-c", BOOT],
                    env=environment(home, place / "tmp"),
                    cwd=home,
                    stdin=question,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                    **become,
                )
            except OSError as error:
                raise DoesNotStart(
                    text("its Python could not be run ({reason})", reason=error.strerror)
                ) from error
        self.running[name] = process, out, err

    def _stop(self) -> None:
        for process, out, err in self.running.values():
            with out, err, contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def environment(home: Path, scratch: Path) -> dict[str, str]:
    """Return an environment in which Hermes sees no settings of this machine.

    Some of its modules install missing packages as soon as their availability is queried.
    """
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    still = {"HERMES_DISABLE_LAZY_INSTALLS": "1", "PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}
    places = {"HERMES_HOME": str(home), "HOME": str(home.parent), "TMPDIR": str(scratch)}
    return kept | still | places


def _answer(code: int, out: IO[bytes], err: IO[bytes]) -> Any:
    with out, err:
        size = out.seek(0, os.SEEK_END)
        if code or size > MOST:
            raise DoesNotStart(_reason(code, err))
        out.seek(0)
        lines = out.read().decode("utf-8", "replace").splitlines()
    try:
        return json.loads(lines[-1])
    except (IndexError, ValueError, RecursionError):
        raise DoesNotStart("its answer is not what was expected") from None


def _reason(code: int, err: IO[bytes]) -> str:
    """Return what the script wrote about its error; a missing module says more than the rest."""
    size = err.seek(0, os.SEEK_END)
    err.seek(max(0, size - 4000))
    lines = [line.strip() for line in err.read().decode("utf-8", "replace").splitlines()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Exit)\b", line)]
    missing = [line for line in errors if line.startswith(("ModuleNotFoundError", "ImportError"))]
    told = [line for line in errors if ": " in line]
    last = next((line for line in reversed(missing or told or errors or lines) if line), "")
    if not last:
        return text("it ended with exit code {code}", code=code)
    from hermes_doctor.redaction import clean

    return clean(last[:160])


def _make_place(place: Path, names: Sequence[str], user: Privileges | None) -> None:
    """Make the folder of one script and the folders in it, for the owner.

    His other scripts may still run, so he gets the outer folder last: until then only root can
    put anything into it, and never into the folder that contains it.
    """
    place.mkdir(mode=0o700)
    inside = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for name in names:
            os.mkdir(name, 0o700, dir_fd=inside)
            if user:
                os.chown(name, user.uid, user.gid, dir_fd=inside, follow_symlinks=False)
        if user:
            os.fchown(inside, user.uid, user.gid)
    finally:
        os.close(inside)


@contextlib.contextmanager
def _scratch(user: Privileges | None) -> Iterator[Path]:
    """Make a folder for the scripts, in memory if there is room, and remove it afterwards.

    It stays root's own: the owner can reach his folders in it, but replace none.
    """
    import shutil

    place = "/dev/shm"
    fits = os.access(place, os.W_OK) and shutil.disk_usage(place).free > _ROOM
    folder = Path(tempfile.mkdtemp(prefix="hermes-doctor-learn-", dir=place if fits else None))
    try:
        if user:
            folder.chmod(0o711)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _processors() -> int:
    return max(2, min(4, os.cpu_count() or 2))
