"""Free disk space by deleting old logs, request dumps and cached files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="free-space", codes=["DISK-FULL"], safety=Safety.CONFIRM, gives_up_data=True)
def free_space(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Delete old log lines, request dumps and cached files."""
    from hermes_doctor.api import FreeSpace

    found = probes.removable_files()
    if not found:
        raise CannotFix("The home has no large logs, request dumps or cached files to delete.")
    yield FreeSpace(probes.home, tuple(found))
