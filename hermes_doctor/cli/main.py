"""Runs the command line and turns every result into an exit code."""

from __future__ import annotations

import os
import sys

from hermes_doctor.core.model import Trouble


def main() -> None:
    """Run a command; every expected failure is one line and an exit code."""
    import gc

    from hermes_doctor.cli import time_guard
    from hermes_doctor.cli.exits import end_here, exit_code_for_monitors
    from hermes_doctor.core.outgoing import guard_output

    guard_output()
    gc.set_threshold(100_000)  # an examination makes little garbage (see `__main__`)
    gc.enable()
    if time_guard.is_needed(sys.argv[1:]):
        time_guard.start(sys.argv[1:])
    code = end_here(_run)
    # Threads of checks that timed out may still hang in a system call: do not wait for them.
    if sys.stderr is not None:
        sys.stderr.flush()
    code = exit_code_for_monitors(code)
    time_guard.report(code)
    os._exit(code)


def _run() -> object:
    """Run the command, with a limited amount of memory."""
    from hermes_doctor.cli import time_guard

    words = sys.argv[1:]
    if words and not words[0].startswith("-"):
        from hermes_doctor.core.system import limits

        if words[0] != "watch" and not time_guard.is_needed(words):
            for word in words:  # typer looks at the paths that were typed
                if os.sep in word:
                    limits.note_drive(word.rpartition("=")[2])
            limits.watch_drives(_say)
        with limits.limited():
            return _run_words(words)
    return _run_words(words)


def _say(message: str) -> None:
    """Print a line about what holds the command up."""
    from hermes_doctor.core.terminal.lines import row
    from hermes_doctor.core.terminal.show import show

    show([row(f"hermes-doctor: {message}")], sys.stderr)


def _run_words(words: list[str]) -> object:
    """Run the command; plain words are understood without loading typer."""
    from hermes_doctor.cli import quick_args

    if words == ["--version"]:
        from hermes_doctor.cli import front_page

        print(front_page.version_line())  # noqa: T201
        return 0
    if (asked := quick_args.parse(words)) is not None:
        return asked()
    from shutil import get_terminal_size

    columns = get_terminal_size().columns
    result = _run_command(words, columns)
    if not words:  # which may be somebody's first minute with this tool
        from hermes_doctor.core import home
        from hermes_doctor.core.terminal.lines import BLANK, row
        from hermes_doctor.core.terminal.show import show

        try:
            home.find(None)
        except Trouble as why:
            show([BLANK, row(str(why))])
    return result


def _run_command(words: list[str], columns: int) -> object:
    """Run the command; the front page is shown without loading typer if it fits."""
    if words in (["--help"], ["-h"]):
        from hermes_doctor.cli import front_page

        page = front_page.page(os.path.basename(sys.argv[0]), columns)
        if page is not None:
            print(page, end="")  # noqa: T201
            return 0
    from hermes_doctor.cli import help_layout
    from hermes_doctor.cli.commands import app, build_only

    build_only(words)
    return app(words or ["--help"], standalone_mode=False, **help_layout.use(columns))
