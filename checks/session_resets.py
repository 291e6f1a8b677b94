"""Check that the settings for resetting conversations have values that Hermes understands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text

if TYPE_CHECKING:
    from hermes_doctor.api import Resolved

_MODES = ("daily", "idle", "both", "none")
_KEY = "session_reset"


@check(id="session-resets", group="configuration", codes=["CFG-SESSION-RESET"], by_release=True)
def session_resets(probes: Probes) -> Iterator[Finding]:
    """Does Hermes understand when conversations are to start anew?"""
    found = probes.resolved()
    raw = found.world.raw
    gateway = raw.get("gateway")
    path: tuple[str, ...] = (_KEY,)
    said = raw.get(_KEY)
    newer = found.world.release.since(0, 19)
    if _KEY not in raw and newer and isinstance(gateway, dict):
        path, said = ("gateway", _KEY), gateway.get(_KEY)
    hour = found.world.getenv("SESSION_RESET_HOUR")
    if said is None and not hour:
        raise Skip("nothing is set: Hermes' own times apply")
    if hour.isdigit() and int(hour) > 23:
        yield _finding(
            "SESSION_RESET_HOUR is no hour, so it is 4 o'clock",
            Evidence(hour.source.place, "SESSION_RESET_HOUR is more than 23"),
            "Write an hour from 0 to 23, or take the line out.",
            {"variable": "SESSION_RESET_HOUR"} if hour.source.kind == "env" else {},
        )
    if isinstance(said, dict):
        yield from _parts(found, path, said)
    elif said:
        yield _finding(
            f"{_KEY} is no mapping, so it is ignored",
            Evidence(found.world.document.source(*path).place, "one word, or a list"),
            "Write `mode`, `at_hour` and `idle_minutes` below it.",
            {},
        )


def _parts(found: Resolved, path: tuple[str, ...], said: dict[Any, Any]) -> Iterator[Finding]:
    world = found.world
    numbers = {
        "at_hour": ("SESSION_RESET_HOUR", 4, "from 0 to 23"),
        "idle_minutes": ("SESSION_IDLE_MINUTES", 1440, "more than 0"),
    }
    for key, (variable, usual, words) in numbers.items():
        value = said.get(key)
        if value is None or world.getenv(variable).isdigit():
            continue
        fault = _fault(key, value)
        if not fault:
            continue
        place = world.document.source(*path, key).place
        refuses = isinstance(value, str)
        what = f"it is {usual}" if isinstance(value, int) else "conversations break at that hour"
        meant = int(value) if isinstance(value, str) and value.strip().isdigit() else usual
        if _fault(key, meant):
            meant = usual
        yield _finding(
            f"{_KEY}.{key} is {fault}, so " + ("the gateway does not start" if refuses else what),
            Evidence(place, f"{key} is {fault}"),
            f"Write a number {words}, without quotes.",
            {"path": (*path, key), "value": meant},
            Severity.ERROR if refuses else Severity.WARNING,
        )
    mode = said.get("mode")
    if mode is not None and mode not in _MODES:
        place = world.document.source(*path, "mode").place
        off = mode is False
        yield _finding(
            f"{_KEY}.mode is no word that Hermes knows, so conversations never start anew",
            Evidence(place, "`off` without quotes is YAML for false" if off else "unknown"),
            f"Write one of {', '.join(_MODES)}.",
            {"path": (*path, "mode"), "value": _meant(mode)} if _meant(mode) else {},
            Severity.INFO if off else Severity.WARNING,
        )


def _fault(key: str, value: object) -> str | None:
    if not isinstance(value, int):
        return "no whole number"
    if key == "at_hour" and not 0 <= value <= 23:
        return "no hour of the day"
    return "not more than 0" if key == "idle_minutes" and value <= 0 else None


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
    todo: str,
    data: dict[str, Any],
    severity: Severity = Severity.WARNING,
) -> Finding:
    return Finding(
        code="CFG-SESSION-RESET",
        severity=severity,
        title=title,
        subject=evidence.where,
        detail=text("{todo} It counts after a restart of the gateway.", todo=todo),
        evidence=(evidence,),
        fix="mend-session-reset" if data else None,
        data=data,
    )
