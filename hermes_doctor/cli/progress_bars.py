"""Shows progress bars for long operations, and single lines about them, on stderr."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping

from hermes_doctor.core.system import progress
from hermes_doctor.core.terminal.lines import row
from hermes_doctor.core.terminal.show import show

LARGE = 64 * 1024 * 1024
_PATIENCE = 0.8
_waits: list[float] = []
"""When this process began to wait for something, one entry for each wait."""


def patience() -> float:
    """How many seconds to wait before a bar is shown; the first time, start-up counts, too."""
    import time

    _waits.append(time.monotonic())
    if len(_waits) > 1:
        return _PATIENCE
    from hermes_doctor.cli.exits import LOADED_AT

    return max(0.1, _PATIENCE - (_waits[0] - LOADED_AT))


def bar(
    label: str, total: int, *, quiet: bool
) -> contextlib.AbstractContextManager[Callable[[int], None] | None]:
    """A progress bar on a terminal; nothing for small work, in a pipe or with --json."""
    if not _worth_it(total, quiet):
        return contextlib.nullcontext(None)
    from hermes_doctor.core.terminal.progress import byte_bar

    return byte_bar(label, total)


@contextlib.contextmanager
def repair_bar(label: str, total: int, *, quiet: bool) -> Iterator[Callable[[int], None] | None]:
    """A progress bar for a repair, which also shows its progress messages.

    For small files it appears only if the repair takes longer than a second.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from hermes_doctor.core.terminal.progress import delayed_bar, two_phase_bar

    if total < LARGE:
        with delayed_bar(1.0) as hear, progress.send_to(hear):
            hear(label, None)
            yield None
        return
    with two_phase_bar(label, total) as (advance, hear), progress.send_to(hear):
        yield advance


@contextlib.contextmanager
def transfer_progress(total: int, *, quiet: bool) -> Iterator[None]:
    """Show the progress messages of a transfer, instead of a bar."""
    if not _worth_it(total, quiet):
        yield
        return
    from hermes_doctor.core.terminal.progress import message_bar

    with message_bar() as hear, progress.send_to(hear):
        yield


@contextlib.contextmanager
def waiting(label: str, *, quiet: bool) -> Iterator[None]:
    """Show on a terminal what the command is doing if it takes longer than a second.

    Progress messages replace the label.
    """
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    from hermes_doctor.core.terminal.progress import delayed_bar

    with delayed_bar(patience()) as hear, progress.send_to(hear):
        hear(label, None)
        yield


def _worth_it(total: int, quiet: bool) -> bool:
    return not quiet and total >= LARGE and sys.stderr.isatty()


def capitalized(text: str) -> str:
    """Capitalise the first letter, unless the text begins with a file name."""
    is_name = "." in text.split(" ")[0].rstrip(".:")
    return text if is_name else text[:1].upper() + text[1:]


def tell(text: str) -> None:
    """Print what is being done now, if stderr is a terminal."""
    if sys.stderr.isatty():
        print(f"  {text} …", file=sys.stderr)  # noqa: T201


def say(mark: str, style: str, text: str) -> None:
    """Print one line on stderr."""
    if text:
        show([row((mark, style), text, hang=2)], sys.stderr)


def print_document(data: Mapping[str, object]) -> None:
    """Print the JSON document on stdout."""
    from hermes_doctor.render import document

    print(document.dump(dict(data)))  # noqa: T201


def print_schema_document(kind: str, data: Mapping[str, object]) -> None:
    """Print a JSON document with the schema of this kind."""
    print_document({"schema": f"hermes-doctor/{kind}/1", **data})
