"""Let chats begin anew whose conversation has ended."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    CannotFix,
    Finding,
    Probes,
    Safety,
    Step,
    entry_lines,
    fix,
    replaced_store,
)


@fix(id="drop-routes", codes=["SESSION-ROUTE-STALE"], safety=Safety.CONFIRM)
def drop_routes(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Take the entries of these chats out of sessions.json; their next message begins anew."""
    import json

    file = probes.stores().of("sessions")
    if file is None or file.flaw is not None:
        raise CannotFix("sessions.json cannot be read")
    gone = set(finding.data.get("keys") or ())
    kept = {key: entry for key, entry in file.values.items() if key not in gone}
    if len(kept) < len(file.values):
        data = f"{json.dumps(kept, indent=2)}\n".encode()
        why = "without the chats whose conversation has ended; what was said stays in state.db"
        yield from replaced_store(probes, file, data, why, entry_lines(file, kept))
