"""Save deleted database files that the gateway still has open, then restart the gateway."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix, text

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(
    id="restart-after-saving",
    codes=["DB-DELETED-WAL", "DB-REPLACED", "DB-GONE"],
    safety=Safety.CONFIRM,
    then="save-deleted-log",
    unattended=True,
)
def restart_after_saving(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Save deleted database files and restart the gateway."""
    from hermes_doctor.api import GatewayStep, SaveLost, gateway_service, save_deleted_logs

    service = gateway_service(probes)
    pid = service.running()
    if pid is None or finding.data.get("pid") != pid:
        raise CannotFix(
            text(
                "Process {pid} is not the gateway. Stop that process yourself.",
                pid=finding.data.get("pid"),
            )
        )
    lost_files = probes.lost_files()
    for lost in lost_files:
        others = [one for one in probes.held().holders(lost.database) if one != pid]
        others += [lost.pid] if lost.pid != pid else []
        if others:
            name = probes.home.name_of(lost.database)
            raise CannotFix(
                text(
                    "Process {pid} has {name} open, too. Stop that process first.",
                    pid=others[0],
                    name=name,
                )
            )
    first = save_deleted_logs(probes, pid)
    if first is not None:
        yield first
    found: dict[Path, list[tuple[str, str]]] = {}
    for lost in lost_files:
        if lost.cause != "renamed":
            suffix = lost.path.name.removeprefix(lost.database.name)
            found.setdefault(lost.database, []).append((suffix, lost.fd))
    for path, fds in found.items():
        if any(not suffix for suffix, _ in fds):  # only this file has the last writes
            kept = first.put_back if first is not None else ()
            why = "no other file has its data"
            yield SaveLost(path, pid, tuple(sorted(fds)), why=why, unless=kept)
    yield GatewayStep(service, restart=True, why=finding.title)
