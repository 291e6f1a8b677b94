"""Check that messages get to the conversations and the chats that they belong to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    snapshot,
    text,
)
from hermes_doctor.api.providers import Resolved
from hermes_doctor.api.stores import redact_log_text
from hermes_doctor.api.tools import count, pattern

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
    if probes.home / "state.db" not in probes.databases.files().paths:
        raise Skip("no state.db yet")
    installed = probes.hermes.installation()
    if installed is None or installed.release >= _SELF_REPAIR:
        yield from _in_table(probes)
    else:
        yield from _in_file(probes)


def _in_table(probes: Probes) -> Iterator[Finding]:
    """Report stale rows in state.db; Hermes itself replaces them."""
    try:
        answer = probes.databases.query(probes.home / "state.db", _TABLE)
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
    file = probes.stores.files().of("sessions")
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
        answer = probes.databases.query(probes.home / "state.db", sql)
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
        answer = probes.databases.query(probes.home / "state.db", _TIPS.format(listed))
    except (CouldNotLook, FileNotFoundError):
        return {}
    return {root: tip for root, tip in answer.rows if isinstance(tip, str) and _ID.fullmatch(tip)}


def _title(number: int) -> str:
    if number == 1:
        return text("1 chat uses a conversation that has ended")
    return text("{number} chats use a conversation that has ended", number=number)


_FOLDER = "sessions"
_FROM_DATABASE = (0, 18, 0)
"""From this release on, the gateway also finds the conversation of a chat in state.db."""


@check(id="sessions-folder", group="stores", codes=["SESSION-ROUTE-STALE"], by_release=True)
def sessions_folder(probes: Probes) -> Iterator[Finding]:
    """Is the folder with the conversations of the chats there?"""
    if snapshot(probes.home / _FOLDER).kind != "absent":
        return
    used = [
        earlier_platform
        for earlier_platform in probes.stores.earlier_platforms()
        if earlier_platform.where == "state.db"
    ]
    if not used:
        raise Skip("no chat has written to the bot yet")
    installed = probes.hermes.installation()
    safe = (
        installed is None or installed.release >= _FROM_DATABASE or bool(probes.gateway.running())
    )
    yield Finding(
        code="SESSION-ROUTE-STALE",
        severity=Severity.INFO if safe else Severity.WARNING,
        title=text("{folder} is missing", folder=f"{_FOLDER}/"),
        subject=f"{_FOLDER}/",
        detail="No message is lost: they are in state.db. Hermes creates the folder again by "
        "itself."
        if safe
        else "No message is lost, but after the next start every chat begins a new conversation: "
        "this release stores which conversation belongs to which chat only in that folder.",
        evidence=(
            Evidence(f"{_FOLDER}/", "does not exist"),
            Evidence("state.db", f"{used[0].label}: {used[0].what}"),
        ),
        next="Nothing to do."
        if safe
        else "Restore it before the next start, if a backup has it: `hermes-doctor backup restore "
        "ID sessions/sessions.json`.",
    )


_MODES = ("daily", "idle", "both", "none")
_KEY = "session_reset"
_VARIABLE = "SESSION_IDLE_MINUTES"
_USUAL = 1440
_SHORT = 5
"""People pause longer than this between two messages of one conversation."""


@check(id="session-resets", group="configuration", codes=["CFG-SESSION-RESET"], by_release=True)
def session_resets(probes: Probes) -> Iterator[Finding]:
    """Does Hermes understand when conversations reset?"""
    resolved = probes.settings.resolved()
    raw = resolved.world.raw
    gateway = raw.get("gateway")
    path: tuple[str, ...] = (_KEY,)
    said = raw.get(_KEY)
    newer = resolved.world.release.since(0, 19)
    if _KEY not in raw and newer and isinstance(gateway, dict):
        path, said = ("gateway", _KEY), gateway.get(_KEY)
    hour = resolved.world.getenv("SESSION_RESET_HOUR")
    if said is None and not hour and not resolved.world.getenv(_VARIABLE):
        raise Skip("no reset time is set, so Hermes uses its defaults")
    if hour.isdecimal() and int(hour) > 23:
        yield _finding(
            text("SESSION_RESET_HOUR is not an hour of the day"),
            Evidence(hour.source.place, text("SESSION_RESET_HOUR={value}", value=hour)),
            text("Hermes resets conversations at 04:00 instead."),
            text("Write an hour from 0 to 23, then restart the gateway."),
            {"variable": "SESSION_RESET_HOUR"} if hour.source.kind == "env" else {},
        )
    yield from _short(resolved, path, said if isinstance(said, dict) else {})
    if isinstance(said, dict):
        yield from _parts(resolved, path, said)
    elif said:
        yield _finding(
            text("Hermes ignores {key}, because it is not a mapping", key=_KEY),
            Evidence(resolved.world.document.source(*path).place, "a single value or a list"),
            text("Hermes resets conversations at its default times."),
            text("Write `mode`, `at_hour` and `idle_minutes` below it, then restart the gateway."),
            {},
        )


def _parts(resolved: Resolved, path: tuple[str, ...], said: dict[Any, Any]) -> Iterator[Finding]:
    world = resolved.world
    numbers = {
        "at_hour": (
            "SESSION_RESET_HOUR",
            4,
            "Write a number from 0 to 23 without quotes, then restart the gateway.",
        ),
        "idle_minutes": (
            _VARIABLE,
            _USUAL,
            "Write a number above 0 without quotes, then restart the gateway.",
        ),
    }
    for key, (variable, usual, step) in numbers.items():
        value = said.get(key)
        if value is None or world.getenv(variable).isdecimal():
            continue
        fault = _fault(key, value)
        if not fault:
            continue
        place = world.document.source(*path, key).place
        refuses = isinstance(value, str)
        meant = int(value) if isinstance(value, str) and value.strip().isdecimal() else usual
        if _fault(key, meant):
            meant = usual
        yield _finding(
            text(fault, key=f"{_KEY}.{key}"),
            Evidence(place, text("{key}: {value}", key=key, value=redact_log_text(str(value)))),
            text("The gateway does not start with this value.")
            if refuses
            else text("Hermes uses {value} instead.", value=usual)
            if isinstance(value, int)
            else text("Messages fail when a conversation is due for a reset."),
            text(step),
            {"path": (*path, key), "value": meant},
            Severity.ERROR if refuses else Severity.WARNING,
        )
    mode = said.get("mode")
    if mode is not None and mode not in _MODES:
        place = world.document.source(*path, "mode").place
        off = mode is False
        yield _finding(
            text("unknown value of {key}.mode", key=_KEY),
            Evidence(
                place,
                "`off` without quotes means false in YAML"
                if off
                else text("mode: {value}", value=redact_log_text(str(mode))),
            ),
            text("Hermes never resets conversations."),
            text("Write daily, idle, both or none, then restart the gateway."),
            {"path": (*path, "mode"), "value": _meant(mode)} if _meant(mode) else {},
            Severity.INFO if off else Severity.WARNING,
        )


def _short(resolved: Resolved, path: tuple[str, ...], said: dict[Any, Any]) -> Iterator[Finding]:
    """Report a conversation that ends after a pause of a few minutes."""
    world = resolved.world
    mode = said.get("mode") or ("none" if world.release.since(0, 18, 1) else "both")
    if mode not in ("idle", "both"):
        return
    variable = world.getenv(_VARIABLE)
    minutes: Any
    data: dict[str, Any]
    if variable.isdecimal():
        minutes, place = int(variable), variable.source.place
        data = {"variable": _VARIABLE} if variable.source.kind == "env" else {}
        shown = f"{_VARIABLE}={minutes}"
    else:
        minutes, place = (
            said.get("idle_minutes"),
            world.document.source(*path, "idle_minutes").place,
        )
        data = {"path": (*path, "idle_minutes"), "value": _USUAL}
        shown = f"idle_minutes: {minutes}"
    if not isinstance(minutes, int) or isinstance(minutes, bool) or not 0 < minutes <= _SHORT:
        return
    yield _finding(
        text("the bot forgets a conversation after {time}", time=count(minutes, "minute")),
        Evidence(place, shown),
        text(
            "After this pause a chat starts again from zero: the bot no longer knows what was "
            "said. The default is 1440 minutes (1 day)."
        ),
        text("Set a longer time, such as 1440, then restart the gateway."),
        data,
    )


def _fault(key: str, value: object) -> str | None:
    """Return the title template for an invalid value; None if it is valid."""
    if not isinstance(value, int):
        return "{key} is not a whole number"
    if key == "at_hour" and not 0 <= value <= 23:
        return "{key} is not an hour of the day"
    return "{key} is not above 0" if key == "idle_minutes" and value <= 0 else None


def _meant(mode: object) -> str | None:
    """Return the most likely intended mode; None if there is none."""
    import difflib

    if mode is False:
        return "none"
    near = difflib.get_close_matches(str(mode).strip().lower(), _MODES, 1, 0.6)
    return near[0] if near else None


def _finding(
    title: str,
    evidence: Evidence,
    detail: str,
    step: str,
    data: dict[str, Any],
    severity: Severity = Severity.WARNING,
) -> Finding:
    return Finding(
        code="CFG-SESSION-RESET",
        severity=severity,
        title=title,
        subject=evidence.where,
        detail=detail,
        evidence=(evidence,),
        next="" if data else step,
        fix="mend-session-reset" if data else None,
        data=data,
    )
