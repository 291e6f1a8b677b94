"""Check the output of the WhatsApp bridge for the reason why it does not run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hermes_doctor.api import (
    Evidence,
    Finding,
    NamedTuple,
    Probes,
    Severity,
    Skip,
    check,
    pattern,
    spoken,
    text,
)

_FOLDERS = ("whatsapp", "platforms/whatsapp")
_WORKS = pattern(r"WhatsApp connected!")
_PACKAGE = pattern(r"Cannot find (?:package|module) '([\w@./-]{1,120})'")
_PORT = pattern(r"EADDRINUSE\b.{0,60}?:(\d{2,5})\b")
_LOGGED_OUT = pattern(r"Logged out\. Delete session and restart")
_CLOSED = pattern(r"Connection closed \(reason: (\w{1,20})\)")
_ERROR = pattern(r"^((?:\w{1,30})?Error(?: \[\w{1,40}\])?: [^\n]{1,160})\n {1,8}at ", re.MULTILINE)
"""Followed by the places in the code, as Node.js prints an error that ends it."""
_OLD = timedelta(days=3)
_OFTEN = 5
"""Lost connections in a row; one or two are normal."""


class _Reason(NamedTuple):
    """Why the bridge does not run."""

    title: str
    quote: str
    step: str
    code: str = "WA-BRIDGE"


@check(
    id="whatsapp-output",
    group="platforms",
    codes=["WA-BRIDGE", "WA-NOT-PAIRED"],
    needs="platform:whatsapp",
)
def whatsapp_output(probes: Probes) -> Iterator[Finding]:
    """Did the WhatsApp bridge end without an error?"""
    for gateway in probes.gateways():
        claim = (probes.claims(gateway) or {}).get("whatsapp")
        if claim is not None and claim.state == "connected":
            return
    written = [(at, path) for path in _logs(probes) if (at := probes.modified(path))]
    if not written:
        raise Skip("the WhatsApp bridge has not run yet")
    at, path = max(written)
    if datetime.now(UTC) - at > _OLD:
        raise Skip("the WhatsApp bridge has not run for days")
    output = _WORKS.split(probes.end_of(path))[-1]
    reason = _reason(output)
    if reason is None:
        return
    name = probes.home.name_of(path)
    yield Finding(
        code=reason.code,
        severity=Severity.ERROR,
        title=reason.title,
        subject="whatsapp",
        detail="Nobody on WhatsApp gets an answer: the bridge to WhatsApp does not run.",
        evidence=(Evidence(name, reason.quote),),
        since=at,
        next=reason.step,
        data={"platform": "whatsapp"},
    )


def _logs(probes: Probes) -> Iterator[Path]:
    for folder in _FOLDERS:
        yield probes.home / folder / "bridge.log"


def _reason(output: str) -> _Reason | None:
    if match := _last(_PACKAGE, output):
        return _Reason(
            "the WhatsApp bridge lacks an npm package",
            spoken(match[0]),
            "Run `npm install` in the folder scripts/whatsapp-bridge of Hermes, then restart the "
            "gateway.",
        )
    if match := _last(_PORT, output):
        return _Reason(
            text("the WhatsApp bridge cannot use port {port}", port=match[1]),
            spoken(match[0]),
            "Stop the other program on this port; it may be a bridge of another gateway.",
        )
    if match := _last(_LOGGED_OUT, output):
        return _Reason(
            "WhatsApp has logged the bot out",
            spoken(match[0]),
            "Run `hermes whatsapp`, scan the code with the phone, then restart the gateway.",
            "WA-NOT-PAIRED",
        )
    closed = _CLOSED.findall(output)
    if len(closed) >= _OFTEN:
        return _Reason(
            "WhatsApp closes every connection of the bridge",
            f"Connection closed (reason: {closed[-1]}), {len(closed)} times",
            "Update Hermes, because WhatsApp refuses old bridges; then restart the gateway.",
        )
    if match := _last(_ERROR, output):
        return _Reason(
            "the WhatsApp bridge ended with an error",
            spoken(match[1]),
            "Fix what the quoted line names, then restart the gateway.",
        )
    return None


def _last(what: re.Pattern[str], output: str) -> re.Match[str] | None:
    """Return the last place where the pattern matches."""
    found = None
    for match in what.finditer(output):
        found = match
    return found
