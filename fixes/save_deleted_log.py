"""Save a deleted write-ahead log that a process has open, without stopping the process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(
    id="save-deleted-log",
    codes=["DB-DELETED-WAL", "DB-REPLACED", "DB-GONE"],
    safety=Safety.CONFIRM,
)
def save_deleted_log(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Save the deleted write-ahead log; stop nothing."""
    from hermes_doctor.api import save_deleted_logs

    step = save_deleted_logs(probes, None)
    if step is None:
        raise CannotFix("No process has the deleted file open any longer. Run the check again.")
    yield step
