"""Remove or redirect chats in sessions.json whose conversation has ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="drop-routes", codes=["SESSION-ROUTE-STALE"], safety=Safety.CONFIRM)
def drop_routes(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Disconnect chats from conversations that have ended."""
    import json

    from hermes_doctor.api import entry_lines, replaced_store

    file = probes.stores().of("sessions")
    if file is None or file.flaw is not None:
        raise CannotFix("sessions.json cannot be read. Repair it first.")
    gone = set(finding.data.get("keys") or ())
    moved = finding.data.get("moved") or {}
    kept = {
        key: {**entry, "session_id": moved[key]} if key in moved else entry
        for key, entry in file.values.items()
        if key not in gone
    }
    if kept != file.values:
        data = f"{json.dumps(kept, indent=2)}\n".encode()
        why = "remove the chats of ended conversations; their messages stay in state.db"
        lines = entry_lines(file, kept, "continues in its newer conversation")
        yield from replaced_store(probes, file, data, why, lines)
