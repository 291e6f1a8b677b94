"""Turns the result of a command into an exit code and one line or one JSON document."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable

from hermes_doctor.model import CannotFix, CouldNotLook, Trouble

INTERRUPTED = 130
_WHOLE = "No file is left half-written."
_state = {"changed": False, "partial": False, "of command": False, "cut off": _WHOLE}


def note_change() -> None:
    """Record that the command has changed something, so that errors do not deny it."""
    _state["changed"] = True


def note_partial() -> None:
    """Record that a run was undone only in part, so that the exit code is 1, not 2."""
    _state["partial"] = True


def set_interrupt_text(text: str = _WHOLE) -> None:
    """Set the text to print if the command is interrupted from here on."""
    _state["cut off"] = text


def command_exit_code(code: int) -> int:
    """Pass on the exit code of a command that we ran, whatever it means there."""
    _state["of command"] = True
    return code


_TAKE_A_VALUE = (
    *("--reason", "--home", "--vault", "--plugins", "--only", "--skip", "--fail-on"),
    *("--interval", "--also", "--after", "--budget", "--patience", "--notify-on"),
    *("--notify-command", "--notify-webhook", "--notify-hermes"),
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
        return _say(f"Interrupted. {_state['cut off']}", INTERRUPTED)
    except (Trouble, CouldNotLook, CannotFix) as trouble:
        return _say(str(trouble), 1 if _state["partial"] else 2)
    except Exception as error:  # noqa: BLE001 (the last place where anything can be caught)
        return _other(error)


def _other(error: Exception) -> int:
    from typer._click import exceptions  # typer carries its own copy of click

    if type(error).__name__ == "Abort":
        return _say("Interrupted. Nothing was changed.", INTERRUPTED)
    if isinstance(error, exceptions.NoArgsIsHelpError):
        print(error.format_message(), file=sys.stderr)  # noqa: T201
        return 2
    if isinstance(error, exceptions.ClickException):
        where = getattr(error, "ctx", None)
        hint = f" Try: {where.command_path} --help" if where is not None else ""
        said = error.format_message()
        return _say(said + ("" if said.endswith((".", "?")) else ".") + hint, 2)
    if isinstance(error, OSError) and _state["changed"]:
        why = _reason(error).lower()
        return _say(
            f"The changes were made, but the report could not be written ({why}). "
            "See: hermes-doctor check",
            1,
        )
    if isinstance(error, OSError):
        name = f": {error.filename}" if error.filename else ""
        return _say(f"{_reason(error)}{name}", 2)
    from hermes_doctor.examination.runner import describe_crash

    return _say(
        f"This is a bug in hermes-doctor: {describe_crash(error)}. No file is left half-written. "
        f"Please report it together with the command you typed.",
        2,
    )


def _reason(error: OSError) -> str:
    """The system's text for the error, or our own if it has no number."""
    return os.strerror(error.errno) if error.errno else str(error)


def _document(message: str, code: int) -> str:
    """The error as JSON, in the format of the command: for a watch, one event per line."""
    if sys.argv[1:2] == ["watch"]:
        from hermes_doctor.watch.event_lines import trouble_line

        return trouble_line(message)
    from hermes_doctor.render import document

    return document.dump(document.of_trouble(message, code))


def _say(message: str, code: int) -> int:
    from hermes_doctor.redaction import clean

    pairs = zip(sys.argv, sys.argv[1:], strict=False)
    if any(word == "--json" and before not in _TAKE_A_VALUE for before, word in pairs):
        with contextlib.suppress(OSError):  # a full disk may be the cause
            print(_document(message, code), flush=True)  # noqa: T201
            return code
    from hermes_doctor.terminal.lines import fit_encoding

    print(fit_encoding(f"hermes-doctor: {clean(message)}", sys.stderr), file=sys.stderr)  # noqa: T201
    return code
