"""Show progress bars for long operations on the standard error of a terminal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text


def _progress(*columns: ProgressColumn) -> Progress:
    """A bar on stderr that is erased at its end.

    It leaves `sys.stdout` alone: a bar that starts while a check runs would find stderr there and
    put that back at its end, so that `check > FILE` would write nothing into the file.
    """
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, redirect_stdout=False)


class _Now(ProgressColumn):
    """A column that shows the current work: the text of `get_text`, else the last finished name."""

    def __init__(self, get_text: Callable[[], str]) -> None:
        super().__init__()
        self.get_text = get_text

    def render(self, task: Task) -> Text:
        """Return the current text; called each time the bar is drawn."""
        return Text(self.get_text() or str(task.fields["now"]))


@contextmanager
def count_bar(
    label: str, total: int, get_text: Callable[[], str] = lambda: ""
) -> Iterator[Callable[[str], None]]:
    """Show a bar that advances by one for each name that it gets, with the text of `get_text`."""
    columns = (TextColumn("{task.description}"), BarColumn(), _Now(get_text))
    with _progress(*columns) as bar:
        task = bar.add_task(label, total=total, now="")
        yield lambda name: bar.update(task, advance=1, now=name)


@contextmanager
def byte_bar(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar that advances by bytes."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with _progress(*columns) as bar:
        task = bar.add_task(label, total=total)
        yield lambda count: bar.update(task, advance=count)


@contextmanager
def two_phase_bar(
    label: str, total: int
) -> Iterator[tuple[Callable[[int], None], Callable[[str, float | None], None]]]:
    """Show a bar that first advances by bytes and then shows progress messages.

    If a message does not say how much is done, the bar only shows that the work goes on.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with _progress(*columns) as bar:
        task = bar.add_task(label, total=total)

        def hear(what: str, share: float | None) -> None:
            new = what != bar.tasks[task].description  # drawn at once: it may not take long
            total = None if share is None else 1.0
            bar.update(task, description=what, total=total, completed=share or 0.0, refresh=new)

        yield lambda count: bar.update(task, advance=count), hear


@contextmanager
def delayed_bar(seconds: float) -> Iterator[Callable[[str, float | None], None]]:
    """Show a bar with progress messages, but only if the work takes longer than `seconds`."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bar = _progress(*columns)
    task = bar.add_task("", total=None)
    start = threading.Timer(seconds, bar.start)
    start.daemon = True
    start.start()
    try:
        yield lambda what, share: bar.update(
            task, description=what, total=None if share is None else 1.0, completed=share or 0.0
        )
    finally:
        start.cancel()
        start.join()
        bar.stop()


@contextmanager
def message_bar() -> Iterator[Callable[[str, float | None], None]]:
    """Show a bar with progress messages; it appears with the first message.

    Until then another program may ask for a password on the same terminal.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bar = _progress(*columns)

    def hear(what: str, share: float | None) -> None:
        if not bar.tasks:
            bar.add_task(what)
            bar.start()
        new = what != bar.tasks[0].description  # drawn at once: it may not take long
        total = None if share is None else 1.0
        task = bar.tasks[0].id
        bar.update(task, description=what, total=total, completed=share or 0.0, refresh=new)

    try:
        yield hear
    finally:
        if bar.tasks:
            bar.stop()
