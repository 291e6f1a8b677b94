"""Give a file back to the home's owner and make it writable for that user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix, snapshot

if TYPE_CHECKING:
    from hermes_doctor.api import Step


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
