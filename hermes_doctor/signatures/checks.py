"""A folder of log rules as one check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Check, CouldNotLook, Finding, Partly, Skip

if TYPE_CHECKING:
    from hermes_doctor.probes import Probes
    from hermes_doctor.signatures.folder import Folder

ID = "log-rules"
GROUP = "logs"
QUESTION = "Do the logs tell of a fault that is not over?"


def check_of(id: str, folder: Folder) -> Check:
    """The check that asks the rules of a folder."""
    return Check(id, GROUP, folder.codes, QUESTION, lambda probes: _look(probes, folder), 5.0)


def _look(probes: Probes, folder: Folder) -> Iterator[Finding | CouldNotLook | Partly]:
    from hermes_doctor.signatures.asking import ask

    if not (probes.home / "logs").is_dir():
        raise Skip("there is no log yet")
    asked = ask(probes, folder.held.rules)
    if asked.incidents:
        from hermes_doctor.signatures.findings import findings

        yield from findings(asked.incidents, asked.where)
    for source, why, partly in asked.unread:
        yield Partly(f"{source}: {why}") if partly else CouldNotLook(f"{source}: {why}")
