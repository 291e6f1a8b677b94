"""Move gateway.pid and gateway.lock into the vault when no gateway is running."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix, snapshot, text

if TYPE_CHECKING:
    from hermes_doctor.api import Step

_NAMES = ("gateway.pid", "gateway.lock")


@fix(id="clear-stale-lock", codes=["GW-STALE-PID"], safety=Safety.SAFE)
def clear_stale_lock(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Remove gateway.pid and gateway.lock of a stopped gateway."""
    from hermes_doctor.api import MoveAside

    if probes.gateways():
        raise CannotFix("A gateway runs now and uses these files. Nothing to do.")
    runtime = probes.runtime()
    if runtime.unseen:
        raise CannotFix(runtime.unseen)
    if runtime.lock_holder is not None:
        raise CannotFix(
            text(
                "Process {pid} holds gateway.lock. Stop that process first.",
                pid=runtime.lock_holder,
            )
        )
    for name in _NAMES:
        kind = snapshot(probes.home / name).kind
        if kind not in ("absent", "file", "symlink"):
            raise CannotFix(
                text("{name} is a {kind}, not a file. Remove it yourself.", name=name, kind=kind)
            )
        if kind != "absent":
            yield MoveAside(probes.home / name, why="no gateway uses it")
