"""Run scripts under the interpreter of a Hermes: no network, no settings of this machine.

Each script gets an empty home of its own. All are stopped when the time is over, when one fails,
and when this process is interrupted.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hermes_doctor.core.lazy import EMPTY, NamedTuple
from hermes_doctor.core.message import text
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.redaction import clean
from hermes_doctor.core.system.isolated import Limits, OwnFolder, RunningCommand
from hermes_doctor.core.system.privileges import Privileges

BOOT = r"""
import io, json, socket, sys, types
given = json.load(sys.stdin)
def refuse(*args, **options):
    raise OSError(101, "hermes-doctor learn works without network")
connect = socket.socket.connect
def local(self, address):
    return connect(self, address) if self.family == socket.AF_UNIX else refuse()
socket.socket.connect = socket.socket.connect_ex = local
socket.getaddrinfo = socket.gethostbyname = socket.gethostbyname_ex = refuse
import site
site.main()
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
"""Refuses the network also where the kernel cannot, and only then lets the environment's own files
take effect (`site`)."""
LIMITS = Limits()
_PAUSE = 0.05
_ROOM = 256 * 1024 * 1024


class Lesson(NamedTuple):
    """A script, the words after its name, and what it reads from its standard input."""

    script: str
    words: tuple[str, ...] = ()
    question: Any = None
    modules: Mapping[str, str] = EMPTY
    """The modules of this project that the script needs, as text."""
    writes: tuple[Path, ...] = ()
    """Folders outside of its own one in which it may write."""


class DoesNotStart(Trouble):
    """Says why a Hermes gave no answer."""


def ask_all(
    python: Path,
    lessons: Mapping[str, Lesson],
    *,
    seconds: float,
    until: float | None = None,
    user: Privileges | None = None,
    at_once: int | None = None,
    heard: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Return the answer to each lesson. `heard` is called with the name of each answered lesson.

    `until` is when the `seconds` are over, if some have passed already.
    """
    until = time.monotonic() + seconds if until is None else until
    waiting, answers = [*lessons], dict[str, Any]()
    running: dict[str, RunningCommand] = {}
    with _scratch(user) as folder:
        try:
            while waiting or running:
                while waiting and len(running) < (at_once or max(2, min(4, os.cpu_count() or 2))):
                    name = waiting.pop(0)
                    place = folder / name.replace("/", "-")
                    running[name] = _start(python, lessons[name], place, user)
                for name, command in list(running.items()):
                    code = command.ended()
                    if command.wrote_too_much:
                        raise DoesNotStart("it wrote more than {most} MB", most=LIMITS.output)
                    if code is not None:
                        running.pop(name).end()
                        answers[name] = _answer(code, command)
                        heard(name)
                if time.monotonic() > until:
                    raise DoesNotStart(too_slow(seconds))
                time.sleep(_PAUSE)
        finally:
            for command in running.values():
                command.end()
    return answers


def _start(python: Path, lesson: Lesson, place: Path, user: Privileges | None) -> RunningCommand:
    names = (".hermes", "tmp")
    # The owner's other scripts may still run, so he gets the outer folder last: until then only
    # root can put anything into it, and never into the folder that contains it.
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
    given = {
        **{"script": lesson.script, "modules": dict(lesson.modules)},
        **{"words": lesson.words, "question": lesson.question},
    }
    home = place / names[0]
    return RunningCommand(
        [str(python), "-I", "-S", "-B", "-c", BOOT],
        given=json.dumps(given).encode(),
        env=environment(home, place / names[1]),
        folder=OwnFolder(place, names, lesson.writes),
        cwd=home,
        user=(user.uid, user.gid, user.groups) if user else None,
        limits=LIMITS,
    )


def too_slow(seconds: float) -> str:
    return text("it did not answer within {seconds:g} s", seconds=seconds)


def environment(home: Path, scratch: Path) -> dict[str, str]:
    """Return an environment in which Hermes sees no settings of this machine.

    Some of its modules install missing packages as soon as their availability is queried.
    """
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    still = {"HERMES_DISABLE_LAZY_INSTALLS": "1", "PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}
    places = {"HERMES_HOME": str(home), "HOME": str(home.parent), "TMPDIR": str(scratch)}
    return kept | still | places


def _answer(code: int, command: RunningCommand) -> Any:
    if code:
        raise DoesNotStart(command.reason() or _reason(code, command.err[-4000:]))
    lines = command.out.decode("utf-8", "replace").splitlines()
    try:
        return json.loads(lines[-1])
    except (IndexError, ValueError, RecursionError):
        raise DoesNotStart("its answer is not what was expected") from None


def _reason(code: int, err: bytes) -> str:
    """Return what the script wrote about its error; a missing module says more than the rest."""
    lines = [line.strip() for line in err.decode("utf-8", "replace").splitlines()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Exit)\b", line)]
    missing = [line for line in errors if line.startswith(("ModuleNotFoundError", "ImportError"))]
    told = [line for line in errors if ": " in line]
    last = next((line for line in reversed(missing or told or errors or lines) if line), "")
    if not last:
        return text("it ended with exit code {code}", code=code)
    return clean(last[:160])


@contextlib.contextmanager
def _scratch(user: Privileges | None) -> Iterator[Path]:
    """Make a folder for the scripts, in memory if there is room, and remove it afterwards.

    It stays root's own: the owner can reach his folders in it, but replace none.
    """
    place = "/dev/shm"
    fits = os.access(place, os.W_OK) and shutil.disk_usage(place).free > _ROOM
    folder = Path(tempfile.mkdtemp(prefix="hermes-doctor-learn-", dir=place if fits else None))
    try:
        if user:
            folder.chmod(0o711)
        yield folder
    finally:
        try:
            shutil.rmtree(folder, ignore_errors=True)
        except RecursionError:  # folders in folders, thousands of them
            subprocess.run(["rm", "-rf", "--", str(folder)], check=False)
