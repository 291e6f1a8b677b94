"""Check that no chat is routed to a conversation that has ended."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    count,
    pattern,
    text,
)

_SELF_REPAIR = (0, 18, 0)
"""From this release on, a starting gateway repairs routes; from 0.18.1 on, every message does."""
_ID = pattern(r"[A-Za-z0-9_.:-]{1,100}")
_MOST = 500
_TABLE = (
    "SELECT count(*) FROM gateway_routing r JOIN sessions s ON s.id = CASE "
    "WHEN json_valid(r.entry_json) THEN json_extract(r.entry_json, '$.session_id') END "
    "WHERE s.end_reason IS NOT NULL"
)
_TIPS = (
    "WITH RECURSIVE went(root, id, depth) AS (SELECT id, id, 0 FROM sessions WHERE id IN ({}) "
    "UNION ALL SELECT went.root, child.id, depth + 1 FROM went "
    "JOIN sessions parent ON parent.id = went.id AND parent.end_reason = 'compression' "
    "JOIN sessions child ON child.parent_session_id = parent.id "
    "AND child.started_at >= parent.ended_at WHERE depth < 100) "
    "SELECT went.root, went.id FROM went JOIN sessions s ON s.id = went.id "
    "WHERE went.depth > 0 AND s.end_reason IS NULL ORDER BY s.started_at"
)
"""Hermes' own rule: a child that started after its parent was compressed; the latest is last."""


@check(id="routes", group="stores", codes=["SESSION-ROUTE-STALE"], by_release=True)
def routes(probes: Probes) -> Iterator[Finding]:
    """Does every chat belong to a conversation that is open?"""
    if probes.home / "state.db" not in probes.databases().paths:
        raise Skip("no state.db yet")
    installed = probes.installation()
    if installed is None or installed.release >= _SELF_REPAIR:
        yield from _in_table(probes)
    else:
        yield from _in_file(probes)


def _in_table(probes: Probes) -> Iterator[Finding]:
    """Report stale rows in state.db; Hermes itself replaces them."""
    try:
        answer = probes.ask(probes.home / "state.db", _TABLE)
    except (CouldNotLook, FileNotFoundError):
        return  # the database checks report why
    stale = answer.rows[0][0] if answer.rows and not answer.error else 0
    if stale:
        yield Finding(
            code="SESSION-ROUTE-STALE",
            severity=Severity.INFO,
            title=_title(stale),
            subject="state.db",
            detail="Hermes corrects it with the next message of the chat or at its next start.",
            evidence=(Evidence("state.db", f"gateway_routing: {count(stale, 'row')}"),),
            next="Nothing to do.",
        )


def _in_file(probes: Probes) -> Iterator[Finding]:
    """Report stale entries in sessions.json, which these releases never compare with state.db."""
    file = probes.stores().of("sessions")
    if file is None or not isinstance(file.values, dict):
        return
    ids: dict[str, str] = {}
    for key, entry in list(file.values.items())[:_MOST]:
        id = entry.get("session_id") if isinstance(entry, dict) else None
        if isinstance(id, str) and _ID.fullmatch(id):
            ids[key] = id
    if not ids:
        return
    listed = ", ".join(f"'{id}'" for id in set(ids.values()))
    sql = f"SELECT id FROM sessions WHERE end_reason IS NOT NULL AND id IN ({listed})"
    try:
        answer = probes.ask(probes.home / "state.db", sql)
    except (CouldNotLook, FileNotFoundError):
        return
    ended = {row[0] for row in answer.rows}
    stale = [key for key, id in ids.items() if id in ended]
    tips = _went_on(probes, {ids[key] for key in stale})
    moved = {key: tips[ids[key]] for key in stale if ids[key] in tips}
    if stale:
        yield Finding(
            code="SESSION-ROUTE-STALE",
            severity=Severity.WARNING,
            title=_title(len(stale)),
            subject="state.db",
            detail=(
                "New messages go into the ended conversation and are deleted with it when Hermes "
                "removes old ones. Hermes 0.18 and newer prevent this."
            ),
            evidence=(
                Evidence(file.name, f"{count(len(stale), 'chat')}; ended according to state.db"),
                *(
                    [Evidence("state.db", f"{count(len(moved), 'chat')} can continue elsewhere")]
                    if moved
                    else []
                ),
            ),
            fix="drop-routes",
            data={"keys": [key for key in stale if key not in moved], "moved": moved},
        )


def _went_on(probes: Probes, ended: set[str]) -> dict[str, str]:
    """Map conversations that were compressed to the conversation that continues each."""
    if not ended:
        return {}
    listed = ", ".join(f"'{id}'" for id in ended)
    try:
        answer = probes.ask(probes.home / "state.db", _TIPS.format(listed))
    except (CouldNotLook, FileNotFoundError):
        return {}
    return {root: tip for root, tip in answer.rows if isinstance(tip, str) and _ID.fullmatch(tip)}


def _title(number: int) -> str:
    if number == 1:
        return text("1 chat uses a conversation that has ended")
    return text("{number} chats use a conversation that has ended", number=number)
