"""Free space, and correct owners and modes of files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix, snapshot
from hermes_doctor.api.tools import list_folder

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="free-space", codes=["DISK-FULL"], safety=Safety.CONFIRM, gives_up_data=True)
def free_space(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Delete old log lines, request dumps and cached files."""
    from hermes_doctor.api import FreeSpace

    removable_files = probes.files.removable_files()
    if not removable_files:
        raise CannotFix("The home has no large logs, request dumps or cached files to delete.")
    yield FreeSpace(probes.home, tuple(removable_files))


_KEPT = 5 * 1024**2
"""Bytes at the end of a log that stay in place, because people and other checks read them."""
_NEWEST = 20
"""Number of newest dumps that stay, because they show what the provider answers now."""
_MOST = 5000
"""Maximum number of dumps that one run moves; the next run continues."""


@fix(id="trim-logs", codes=["LOG-FLOOD", "REQUEST-DUMPS"], safety=Safety.CONFIRM)
def trim_logs(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Shorten huge logs and move old dumps to the vault."""
    from hermes_doctor.api import GatewayStep, MoveLog
    from hermes_doctor.api.database import writers
    from hermes_doctor.api.repairs import gateway_control
    from hermes_doctor.api.stores import lacks_room

    if lacks_room(probes.machine.space()):
        raise CannotFix("The disk is full, so a backup does not fit on it. Repair DISK-FULL first.")
    dumps = finding.code == "REQUEST-DUMPS"
    files = _dumps(probes) if dumps else [finding.data["path"]]
    held = writers(files)
    gateways = {gateway.pid for gateway in probes.gateway.running()}
    strangers = {pid for pids in held.values() for pid in pids} - gateways
    if strangers:
        raise CannotFix(
            "Process {pid}, which is not the gateway, writes to it. Stop that process first.",
            pid=min(strangers),
        )
    for file in files:
        if snapshot(file).kind == "file":
            why = "newer ones stay" if dumps else "it has grown too large"
            yield MoveLog(file, why=why, keep=0 if dumps else _KEPT)
    if held:
        # Without a restart the gateway writes into a deleted file: lines and disk space are lost.
        why = f"it writes to {min(held).name}"
        yield GatewayStep(gateway_control(probes), restart=True, why=why)


def _dumps(probes: Probes) -> list[Path]:
    folder = probes.home / "sessions"
    names = [name for name in list_folder(folder, 100_000) if name.startswith("request_dump_")]
    files = [folder / name for name in names]
    files.sort(key=lambda file: snapshot(file).mtime_ns)
    return files[: max(0, len(files) - _NEWEST)][:_MOST]


@fix(id="set-aside-copies", codes=["DB-BACKUP-CLUTTER"], safety=Safety.CONFIRM)
def set_aside_copies(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Move old copies of the damaged database to the vault."""
    from hermes_doctor.api import MoveAside

    found = False
    for path in finding.data["older"]:
        if snapshot(path).kind == "file":
            found = True
            yield MoveAside(path, why="a newer copy stays")
    if not found:
        raise CannotFix("The copies no longer exist. Nothing to do.")


@fix(id="give-back-owner", codes=["DB-OWNER", "PERM-OWNER"], safety=Safety.SAFE)
def give_back_owner(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Give the file to the owner of the home."""
    from hermes_doctor.api import SetMode, SetOwner

    path = probes.home / finding.subject
    owner = snapshot(probes.home.path)
    taken = snapshot(path)
    if taken.uid != owner.uid:
        why = "give it to the owner of the home"
        yield SetOwner(path, owner.uid, owner.gid, why=why, expect=taken)
    if taken.mode & 0o600 != 0o600:
        yield SetMode(path, taken.mode | 0o600, why="let its owner read and write it", expect=taken)


@fix(id="tighten-modes", codes=["PERM-SECRETS"], safety=Safety.SAFE)
def tighten_modes(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Let only the owner read the file."""
    from hermes_doctor.api import SetMode
    from hermes_doctor.api.repairs import refuse_managed

    snapshot = finding.data["snapshot"]
    if snapshot.mode & 0o077:
        refuse_managed(probes)
        yield SetMode(
            finding.data["path"], 0o600, why="let only its owner read it", expect=snapshot
        )
