"""Check that the settings for resetting conversations have values that Hermes understands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, count, spoken, text

if TYPE_CHECKING:
    from hermes_doctor.api import Resolved

_MODES = ("daily", "idle", "both", "none")
_KEY = "session_reset"
_VARIABLE = "SESSION_IDLE_MINUTES"
_USUAL = 1440
_SHORT = 5
"""People pause longer than this between two messages of one conversation."""


@check(id="session-resets", group="configuration", codes=["CFG-SESSION-RESET"], by_release=True)
def session_resets(probes: Probes) -> Iterator[Finding]:
    """Does Hermes understand when conversations reset?"""
    found = probes.resolved()
    raw = found.world.raw
    gateway = raw.get("gateway")
    path: tuple[str, ...] = (_KEY,)
    said = raw.get(_KEY)
    newer = found.world.release.since(0, 19)
    if _KEY not in raw and newer and isinstance(gateway, dict):
        path, said = ("gateway", _KEY), gateway.get(_KEY)
    hour = found.world.getenv("SESSION_RESET_HOUR")
    if said is None and not hour and not found.world.getenv(_VARIABLE):
        raise Skip("no reset time is set, so Hermes uses its defaults")
    if hour.isdecimal() and int(hour) > 23:
        yield _finding(
            text("SESSION_RESET_HOUR is not an hour of the day"),
            Evidence(hour.source.place, text("SESSION_RESET_HOUR={value}", value=hour)),
            text("Hermes resets conversations at 04:00 instead."),
            text("Write an hour from 0 to 23, then restart the gateway."),
            {"variable": "SESSION_RESET_HOUR"} if hour.source.kind == "env" else {},
        )
    yield from _short(found, path, said if isinstance(said, dict) else {})
    if isinstance(said, dict):
        yield from _parts(found, path, said)
    elif said:
        yield _finding(
            text("Hermes ignores {key}, because it is not a mapping", key=_KEY),
            Evidence(found.world.document.source(*path).place, "a single value or a list"),
            text("Hermes resets conversations at its default times."),
            text("Write `mode`, `at_hour` and `idle_minutes` below it, then restart the gateway."),
            {},
        )


def _parts(found: Resolved, path: tuple[str, ...], said: dict[Any, Any]) -> Iterator[Finding]:
    world = found.world
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
            Evidence(place, text("{key}: {value}", key=key, value=spoken(str(value)))),
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
                else text("mode: {value}", value=spoken(str(mode))),
            ),
            text("Hermes never resets conversations."),
            text("Write daily, idle, both or none, then restart the gateway."),
            {"path": (*path, "mode"), "value": _meant(mode)} if _meant(mode) else {},
            Severity.INFO if off else Severity.WARNING,
        )


def _short(found: Resolved, path: tuple[str, ...], said: dict[Any, Any]) -> Iterator[Finding]:
    """Report a conversation that ends after a pause of a few minutes."""
    world = found.world
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
