"""Runs a command that updates Hermes between a backup and an examination."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from hermes_doctor.backup.records.updates import (
    BACKED_UP,
    UPDATED,
    UPDATING,
    Update,
    UpdateRecords,
    process_identity,
)
from hermes_doctor.core.home import Home
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system import limits
from hermes_doctor.core.system.signals import is_in_foreground

_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
INSIDE = "HERMES_DOCTOR_UPDATE"
"""Environment variable for the command: an update that it starts is already guarded."""


def note(home: Home, update: Update, **facts: Any) -> None:
    """Store these facts in the record of an update."""
    for name, value in facts.items():
        setattr(update, name, value)
    UpdateRecords(home).save(update)


def run_command(id: str, home: Home, command: Sequence[str], note: Callable[..., None]) -> int:
    """Run the command of an update as if it had been typed; return its exit code.

    `note` stores facts in the update's record.
    """
    note(stage=UPDATING, guard=process_identity(os.getpid()) or [])
    inside = f"{id}:{home.path}"
    try:
        with limits.lifted():
            child = subprocess.Popen(command, env={**os.environ, INSIDE: inside})
    except OSError as error:
        note(stage=BACKED_UP, guard=[])
        raise Trouble(_unrun(command, error)) from None
    with _forwarding(child):
        note(child=process_identity(child.pid) or [])
        code = child.wait()
    note(exit_code=code, stage=UPDATED)
    return code


def record_command(home: Home, pid: int) -> None:
    """Record that this process is about to become the command of the last update."""
    update = UpdateRecords(home).last()
    if update is not None and update.chat and update.stage == UPDATING:
        note(home, update, child=process_identity(pid) or [])


def exec_command(command: Sequence[str]) -> NoReturn:
    """Replace this process with the command, after undoing Python's own signal settings."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them; the command must not
        signal.signal(number, signal.SIG_DFL)
    try:
        with limits.lifted():
            os.execvp(command[0], [*command])
    except OSError as error:
        raise Trouble(_unrun(command, error)) from None


def _unrun(command: Sequence[str], error: OSError) -> str:
    why = os.strerror(error.errno or 0).lower()
    return text(
        "Could not run {program} ({reason}). Nothing was updated.", program=command[0], reason=why
    )


def is_guarded(look: Callable[[Path, Callable[[], bool]], bool] = lambda _, work: work()) -> bool:
    """Whether a guarded command started us; the variable alone may be a leftover.

    `look` looks into that home, as its owner if root asks.
    """
    id, _, place = os.environ.get(INSIDE, "").partition(":")
    if not id or not place.startswith("/"):
        return False

    def is_running() -> bool:
        update = UpdateRecords(Home(Path(place))).load(id)
        return update.stage == UPDATING and update.is_running()

    try:
        return look(Path(place), is_running)
    except (CouldNotLook, Trouble):
        return False


@contextmanager
def _forwarding(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Forward signals to the command, except those that the terminal has already sent it."""

    def forward(number: int, _: FrameType | None) -> None:
        if number not in (signal.SIGINT, signal.SIGQUIT) or not is_in_foreground():
            child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
