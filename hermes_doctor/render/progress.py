"""Progress of long work, on the error stream of a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def counting(label: str, total: int) -> Iterator[Callable[[str], None]]:
    """A bar that advances by one for each name it is told."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[now]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total, now="")
        yield lambda name: bar.update(task, advance=1, now=name)


@contextmanager
def copying(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar that advances by bytes."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda count: bar.update(task, advance=count)
