"""Read the end of one of Hermes' logs."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.home import Home
from hermes_doctor.logs import hermes, rotated
from hermes_doctor.logs.copied import is_copied
from hermes_doctor.logs.entry import LogEntry, Unread
from hermes_doctor.logs.formats import LogWindow, Wanted
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import list_folder


def entries(
    home: Home, name: str, max_bytes: int, *, since: float = 0.0, wanted: Wanted | None = None
) -> Iterator[LogEntry]:
    """Yield the entries in the last bytes, oldest first; CouldNotLook if they cannot be read."""
    folder = home / "logs"
    files = [(folder / one, f"logs/{one}") for one in rotated.names(name, list_folder(folder))]
    span = LogWindow(since, wanted=wanted)
    yield from rotated.entries(
        *(files, hermes.FORMAT, span),
        max_bytes=max_bytes,
        copied=is_copied(home),
        report_unread=_refuse,
    )


def _refuse(unread: Unread) -> None:
    if not unread.partly:
        raise CouldNotLook(unread.why)
