"""Move the older part of oversized logs and old request dumps into the vault."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix, listing, snapshot, text

if TYPE_CHECKING:
    from hermes_doctor.api import Step

_KEPT = 5 * 1024**2
"""Bytes at the end of a log that stay in place, because people and other checks read them."""
_NEWEST = 20
"""Number of newest dumps that stay, because they show what the provider answers now."""
_MOST = 5000
"""Maximum number of dumps that one run moves; the next run continues."""


@fix(id="trim-logs", codes=["LOG-FLOOD", "REQUEST-DUMPS"], safety=Safety.CONFIRM)
def trim_logs(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Shorten huge logs and move old dumps to the vault."""
    from hermes_doctor.api import GatewayStep, MoveLog, gateway_service, lacks_room, writers

    if lacks_room(probes.space()):
        raise CannotFix("The disk is full, so a backup does not fit on it. Repair DISK-FULL first.")
    dumps = finding.code == "REQUEST-DUMPS"
    files = _dumps(probes) if dumps else [finding.data["path"]]
    held = writers(files)
    gateways = {gateway.pid for gateway in probes.gateways()}
    strangers = {pid for pids in held.values() for pid in pids} - gateways
    if strangers:
        raise CannotFix(
            text(
                "Process {pid}, which is not the gateway, writes to it. Stop that process first.",
                pid=min(strangers),
            )
        )
    for file in files:
        if snapshot(file).kind == "file":
            why = "newer ones stay" if dumps else "it has grown too large"
            yield MoveLog(file, why=why, keep=0 if dumps else _KEPT)
    if held:
        # Without a restart the gateway writes into a deleted file: lines and disk space are lost.
        why = f"it writes to {min(held).name}"
        yield GatewayStep(gateway_service(probes), restart=True, why=why)


def _dumps(probes: Probes) -> list[Path]:
    folder = probes.home / "sessions"
    names = [name for name in listing(folder, 100_000) if name.startswith("request_dump_")]
    files = [folder / name for name in names]
    files.sort(key=lambda file: snapshot(file).mtime_ns)
    return files[: max(0, len(files) - _NEWEST)][:_MOST]
