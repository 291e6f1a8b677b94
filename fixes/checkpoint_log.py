"""Merge a huge write-ahead log (-wal) into its database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix, snapshot

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="checkpoint-wal", codes=["DB-WAL-HUGE"], safety=Safety.SAFE)
def checkpoint_wal(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Merge the write-ahead log (-wal) into its database."""
    from hermes_doctor.api import ReplaceDatabase

    path = probes.home / finding.subject
    yield ReplaceDatabase(
        path, lambda _: None, why="merge its write-ahead log (-wal) into it", expect=snapshot(path)
    )
