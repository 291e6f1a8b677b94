"""Turns the result of a command into an exit code and one line or one JSON document."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes_doctor.core.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.core.redaction import clean

if TYPE_CHECKING:
    from hermes_doctor.core.terminal.lines import Line

LOADED_AT = time.monotonic()
INTERRUPTED = 130
NOTHING = "Nothing was changed."
WHOLE = "No file is left half-written."
_GO_ON = "To go on, run the same command again."
_state = {
    **{"changed": False, "partial": False, "of command": False, "nagios state": False},
    **{"error reported": False, "cut off": ""},
}
_WRITING = (
    *(("hook", "install"), ("hook", "remove"), ("hook", "run"), ("update-guard",), ("watch",)),
    *(("backup", "push"), ("backup", "pull"), ("backup", "export"), ("backup", "schedule")),
    *(("demo",), ("history", "prune")),
)
"""Commands that change files at any time and do not say what is done so far."""


def note_change() -> None:
    """Record that the command has changed something, so that errors do not deny it."""
    _state["changed"] = True


def note_partial() -> None:
    """Record that a run was undone only in part, so that the exit code is 1, not 2."""
    _state["partial"] = True


def set_interrupt_text(text: str = "") -> None:
    """Set what was done and what was not, for a command that is interrupted from here on."""
    _state["cut off"] = text


def add_interrupt_text(text: str) -> None:
    """Add to that text what one part of the command did before it was interrupted."""
    earlier = str(_state["cut off"])
    if earlier in ("", NOTHING):
        set_interrupt_text(text)
    elif text != NOTHING:
        set_interrupt_text(f"{earlier} {text}")


def command_exit_code(code: int) -> int:
    """Pass on the exit code of a command that we ran, whatever it means there."""
    _state["of command"] = True
    return code


def end_here(run: Callable[[], object]) -> int:
    """Run a command to the end of its output, and return the exit code."""
    code = exit_code_of(run)
    try:
        if sys.stdout is not None:  # closed by the caller
            sys.stdout.flush()
    except OSError as error:  # `| head` closed the pipe, or the disk is full
        code = exit_code_without_output(error, code)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def pass_on(code: int) -> int:
    """Return the exit code of a process that has said everything itself."""
    _state["error reported"] = True
    return command_exit_code(code)


_TAKE_A_VALUE = (
    *("--reason", "--home", "--vault", "--plugins", "--only", "--skip", "--fail-on"),
    *("--format", "--output", "--metrics", "--heartbeat", "--heartbeat-fail"),
    *("--interval", "--also", "--after", "--budget", "--patience", "--notify-on"),
    *("--notify-command", "--notify-webhook", "--notify-hermes", "--timeout"),
)


def exit_code_of(run: Callable[[], object]) -> int:
    """Run a command and turn its result or exception into an exit code."""
    try:
        result = run()
        if result == INTERRUPTED and not _state["of command"]:  # typer has caught the signal itself
            raise KeyboardInterrupt
        return result if isinstance(result, int) else 0
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return _interrupted()
    except (Trouble, CouldNotLook, CannotFix) as trouble:
        return say_problem(str(trouble), 1 if _state["partial"] else 2)
    except Exception as error:  # noqa: BLE001 (the last place where anything can be caught)
        return _other(error)


def _interrupted() -> int:
    """Say what was done, what was not, and how to go on; another Ctrl-C does not stop that."""
    import signal

    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.stderr is not None and sys.stderr.isatty():
        print(file=sys.stderr)  # noqa: T201 (the terminal has written ^C into this line)
    writing = any(sys.argv[1 : len(start) + 1] == list(start) for start in _WRITING)
    done = _state["cut off"] or (WHOLE if writing else NOTHING)
    return say_problem(f"Interrupted. {done} {_GO_ON}", INTERRUPTED)


def _other(error: Exception) -> int:
    import typer

    from hermes_doctor.core.system import limits

    if isinstance(error, typer.Abort):
        return _interrupted()
    if isinstance(error, typer.TyperException):
        where = getattr(error, "ctx", None)
        hint = f" Try: {where.command_path} --help" if where is not None else ""
        # an address that was typed in the wrong place may be a secret
        said = re.sub(r"https?://[^\s'\"]+", "(an address)", error.format_message())
        return say_problem(said + ("" if said.endswith((".", "?")) else ".") + hint, 2)
    if why := limits.cause(error):
        done = f" {_state['cut off']}" if _state["cut off"] else ""
        why = f"{why[:1].upper()}{why[1:]}.{done}"
        return say_problem(why, 1 if _state["changed"] or _state["partial"] else 2)
    if isinstance(error, OSError) and _state["changed"]:
        return _say_unreported(error)
    if isinstance(error, OSError) and error.errno and not error.filename:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        said = "Could not write the output or a file" if full else "The system reported an error"
        return say_problem(f"{said}: {_reason(error)}.", 2)
    if isinstance(error, OSError):
        name = f": {error.filename}" if error.filename else ""
        return say_problem(f"{_reason(error)}{name}", 2)
    from hermes_doctor.diagnosis.examination.check_threads import describe_crash

    return say_problem(
        f"This is a bug in hermes-doctor: {describe_crash(error)}. No file is left half-written. "
        f"Please report it together with the command you typed.",
        2,
    )


def _say_unreported(error: OSError) -> int:
    """Say that only the report is missing, and return the exit code."""
    why = _reason(error).lower()
    return say_problem(
        f"The changes were made, but the report could not be written ({why}). "
        "See: hermes-doctor check",
        1,
    )


def _reason(error: OSError) -> str:
    """The system's text for the error, or our own if it has no number."""
    return os.strerror(error.errno) if error.errno else str(error)


def _in_format(asked: str, message: str, code: int) -> str:
    """The error in the format of the command: for a watch, one event per line."""
    if asked == "json" and sys.argv[1:2] == ["watch"]:
        from hermes_doctor.operations.watch.events import trouble_line

        return trouble_line(message)
    from hermes_doctor.render import document, github, nagios

    if asked == "json":
        return document.dump(document.of_trouble(message, code))
    text = clean(message)
    return nagios.of_trouble(text) if asked == "nagios" else github.of_trouble(text)


def say_problem(message: str, code: int) -> int:
    """Print one line about the problem, or a document, and return the exit code."""
    _state["error reported"] = True
    asked = _format_asked()
    if asked is not None:
        with contextlib.suppress(OSError):  # a full disk may be the cause
            print(_in_format(asked, message, code).rstrip("\n"), flush=True)  # noqa: T201
            return code
    if sys.stderr is not None:
        from hermes_doctor.core.terminal.show import show

        show([_line(clean(message))], sys.stderr)
    return code


def keep_nagios_state(code: int) -> int:
    """Note that this exit code is the state of the bot, and return it."""
    _state["nagios state"] = True
    return code


def exit_code_for_monitors(code: int) -> int:
    """Return the exit code; with --format nagios 3 (UNKNOWN), unless it is the state of the bot."""
    return code if _last_format() != "nagios" or _state["nagios state"] else 3


def exit_code_without_output(error: OSError, code: int) -> int:
    """Say that the output could not be written, and return the exit code.

    Nothing is said if `| head` has closed the pipe, or if another error was reported.
    """
    _state["nagios state"] = False
    if isinstance(error, BrokenPipeError) or _state["error reported"]:
        return code or 1
    if _state["changed"]:
        return _say_unreported(error)
    return say_problem(f"Could not write the output: {_reason(error)}.", 2)


def _format_asked() -> str | None:
    """The format in which a program expects even an error; None if a person is to read it."""
    pairs = zip(sys.argv, sys.argv[1:], strict=False)
    if any(word == "--json" and before not in _TAKE_A_VALUE for before, word in pairs):
        return "json"
    last = _last_format()
    return last if last in ("json", "nagios", "github") else None


def _last_format() -> str:
    """The format that `check` was asked for; the last one counts."""
    if sys.argv[1:2] != ["check"]:
        return ""
    given = [
        after if word == "--format" else word.partition("=")[2]
        for word, after in zip(sys.argv, [*sys.argv[1:], ""], strict=True)
        if word == "--format" or word.startswith("--format=")
    ]
    return given[-1].lower() if given else ""


def _line(message: str) -> Line:
    """The message as one line; a command at its end gets a row of its own if it is long."""
    from hermes_doctor.core.terminal.lines import row

    match = re.search(r"hermes-doctor [a-z][^.`]*(?:\.[^\s.`][^.`]*)*$", message)
    text = message[: match.start()] if match else message
    command = [(match[0], "command")] if match else []
    return row(f"hermes-doctor: {text}", *command)
