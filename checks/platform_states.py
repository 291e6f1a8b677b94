"""Check the platform states that the gateway reports, together with its log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    pattern,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Gateway, Platform, PlatformState, Word

_CODES = [
    "QQ-FATAL-CLOSE",
    "QQ-GIVEUP",
    "QQ-TOKEN",
    "QQ-4009",
    "TG-409",
    "TG-NETWORK",
    "DC-ZOMBIE",
    "FEISHU-WS-DEAD",
    "SLACK-ZOMBIE",
    "WX-SESSION-EXPIRED",
    "PLATFORM-DEPS",
    "PLATFORM-DOWN",
]
_BY_ERROR = {
    "telegram_polling_conflict": "TG-409",
    "telegram_network_error": "TG-NETWORK",
    "telegram_connect_error": "TG-NETWORK",
    "discord_gateway_task_exited": "DC-ZOMBIE",
    "discord_websocket_health_stale": "DC-ZOMBIE",
}
_BY_PLATFORM = {"feishu": "FEISHU-WS-DEAD", "slack": "SLACK-ZOMBIE"}
"""Platforms that never reconnect by themselves."""
_ELSEWHERE = pattern(r".*(_lock|lock_conflict|port_in_use)")
"""Errors that two other checks report with more evidence."""
_GRACE = timedelta(minutes=2)
"""A disconnected platform has usually reconnected by then."""
_EXPIRED = timedelta(minutes=11)
_PLAIN = pattern(r"[a-z0-9_./ -]{1,60}", re.IGNORECASE)
_TOKEN = pattern(r"token response missing access_token|Failed to get QQ Bot access token")
_NUMBER = pattern(r"'code': (\d{4,6})\b")
_CLOSED = pattern(r"\[QQBot:[^\]]*\] WebSocket closed: code=(\d{4})\b")
_BACK = pattern(r"\[QQBot:[^\]]*\] (Ready,|Session resumed|Connected$)")
_LOOP = 10
"""Closings in a row without a session between them; QQ normally closes once in half an hour."""
_GAVE_UP = pattern(r"\[QQBot:[^\]]*\] Max reconnect attempts reached")


@check(id="platform-states", group="connections", codes=_CODES)
def platform_states(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does the gateway say that every platform which is set up is in service?"""
    gateways = probes.gateways()
    if not gateways:
        raise Skip("no gateway is seen to run")
    state = probes.runtime().state
    asked = False
    for gateway in gateways:
        claims = probes.claims(gateway)
        if claims is None:
            continue
        asked = True
        for platform in probes.platforms():
            claim = claims.get(platform.name)
            if claim is not None:
                yield from _judge(probes, gateway, platform, claim)
            elif state == "running" and not _newer(probes, gateway, platform):
                yield _never_started(probes, platform)
    if not asked:
        raise CouldNotLook("gateway_state.json is not the running gateway's")
    for doubt in probes.settings().unreadable:
        yield CouldNotLook(doubt)


def _judge(
    probes: Probes, gateway: Gateway, platform: Platform, claim: PlatformState
) -> Iterator[Finding]:
    words = _words(probes, gateway, platform)
    if claim.state == "connected":
        yield from _silently_gone(platform, words)
        return
    if claim.state not in ("fatal", "disconnected", "retrying"):
        return
    if _ELSEWHERE.fullmatch(claim.error_code or ""):
        return
    age = datetime.now(UTC) - (claim.updated_at or gateway.started_at)
    if claim.state == "disconnected" and age < _GRACE:
        return
    code, title, detail, extra = _diagnosis(platform, claim, words)
    dead = claim.state != "retrying" and not platform.notifies
    where = f"gateway_state.json: {platform.name}"
    error = _PLAIN.fullmatch(claim.error_code or "")
    said = f"{claim.state}, {claim.error_code}" if error else claim.state
    yield Finding(
        code=code,
        severity=Severity.ERROR,
        title=title,
        subject=platform.name,
        detail=detail + (_FOR_GOOD if dead else _TRIES_AGAIN),
        evidence=(Evidence(where, said), *extra),
        since=claim.updated_at,
        fix="restart-gateway" if dead else None,
        data={"pid": gateway.pid, "platform": platform.name},
    )


_FOR_GOOD = " It does not come back by itself: the gateway must be restarted."
_TRIES_AGAIN = " The gateway keeps trying."


def _diagnosis(
    platform: Platform, claim: PlatformState, words: list[Word]
) -> tuple[str, str, str, tuple[Evidence, ...]]:
    """Return code, title, explanation and further evidence for a platform that is down."""
    label, error = platform.label, claim.error_code or ""
    if platform.name == "qqbot":
        return _qq(label, claim, words)
    code = _BY_ERROR.get(error)
    if code is None and claim.state != "retrying":
        code = _BY_PLATFORM.get(platform.name)
    if code == "TG-409":
        detail = "Somebody else fetches this bot's messages: another gateway, or a webhook."
    elif code == "TG-NETWORK":
        detail = "api.telegram.org cannot be reached; `--network` tells how far a call comes."
    else:
        detail = f"No message comes in from {label}, and no answer goes out."
    return code or "PLATFORM-DOWN", f"{label} is not connected", detail, ()


def _qq(
    label: str, claim: PlatformState, words: list[Word]
) -> tuple[str, str, str, tuple[Evidence, ...]]:
    error = claim.error_code or ""
    if error.startswith("qq_") and error != "qq_connect_error":
        why = error[3:] if _PLAIN.fullmatch(error) else "unknown"
        return (
            "QQ-FATAL-CLOSE",
            f"QQ has shut the bot out: {why.replace('_', ' ')}",
            "QQ closed the connection with a code that forbids another try. The cause is on "
            "QQ's side: look at the bot on q.qq.com.",
            _closings(words),
        )
    token = [word for word in words if _TOKEN.search(word.text)]
    if error == "qq_connect_error" and token:
        number = _NUMBER.search(token[-1].text)
        said = f"QQ answers {number[1]}" if number else "no token"
        return (
            "QQ-TOKEN",
            "QQ gives the bot no access token",
            "QQ_APP_ID and QQ_CLIENT_SECRET do not belong together, or the bot is not allowed.",
            (Evidence("logs/gateway.log", said),),
        )
    if any(_GAVE_UP.match(word.text) for word in words):
        given_up = "It has tried a hundred times and stopped."
        return "QQ-GIVEUP", f"{label} has given up", given_up, _closings(words)
    last = [match[1] for word in words if (match := _CLOSED.match(word.text))][-1:]
    if claim.state == "disconnected" and last == ["4009"]:
        text = "QQ ended the session (4009), which it does now and then, and no new one came up."
        return "QQ-4009", f"{label} did not come back after a 4009", text, _closings(words)
    if claim.state == "disconnected":
        return "QQ-GIVEUP", f"{label} is disconnected", "It lost its connection.", _closings(words)
    return "PLATFORM-DOWN", f"{label} is not connected", "The connection fails.", _closings(words)


def _closings(words: list[Word]) -> tuple[Evidence, ...]:
    """Return the latest closing in the log as evidence."""
    for word in reversed(words):
        if match := _CLOSED.match(word.text):
            when = f"{word.at:%H:%M:%S} UTC"
            return (Evidence("logs/gateway.log", f"closed with code {match[1]} at {when}"),)
    return ()


def _silently_gone(platform: Platform, words: list[Word]) -> Iterator[Finding]:
    """Report failures in the log of a platform whose state is connected."""
    if platform.name == "weixin":
        expired = [w for w in words if "Session expired; pausing" in w.text]
        if expired and datetime.now(UTC) - expired[-1].at < _EXPIRED:
            yield Finding(
                code="WX-SESSION-EXPIRED",
                severity=Severity.ERROR,
                title="the login to WeChat has expired",
                subject=platform.name,
                detail=(
                    "The gateway says `connected`, sleeps ten minutes and tries again, for ever. "
                    "Scan the QR code anew (`hermes gateway setup`), then restart the gateway."
                ),
                evidence=(
                    Evidence("logs/gateway.log", f"{len(expired)} times, the last just now"),
                ),
                since=expired[0].at,
            )
    if platform.name == "qqbot":
        back = max((n for n, w in enumerate(words) if _BACK.match(w.text)), default=-1)
        closed = [w for w in words[back + 1 :] if _CLOSED.match(w.text)]
        if len(closed) >= _LOOP:
            yield Finding(
                code="QQ-4009",
                severity=Severity.ERROR,
                title="QQ closes every connection as soon as it is made",
                subject=platform.name,
                detail="The old session is dead, and the bot asks for it again and again.",
                evidence=(
                    Evidence("logs/gateway.log", f"{len(closed)} closings without a session"),
                    *_closings(words),
                ),
                since=closed[0].at,
                fix="restart-gateway",
                data={"platform": platform.name},
            )


def _never_started(probes: Probes, platform: Platform) -> Finding:
    library = platform.library
    missing = library is not None and probes.library_path(library) is None
    evidence = [
        Evidence(platform.because, "switches it on"),
        Evidence("gateway_state.json", f"no {platform.name} since the gateway's start"),
    ]
    if missing:
        evidence.append(Evidence("site-packages of Hermes", f"no {library}"))
    return Finding(
        code="PLATFORM-DEPS",
        severity=Severity.ERROR,
        title=text(
            "{platform} is set up, but the gateway has not started it", platform=platform.label
        ),
        subject=platform.name,
        detail=(
            text(
                "The library {library} is missing in the environment that the gateway runs from.",
                library=library,
            )
            if missing
            else "Most often a library is missing in the environment that the gateway runs from. "
            "logs/gateway.log says `No adapter available` or `requirements not met`."
        ),
        evidence=tuple(evidence),
    )


def _newer(probes: Probes, gateway: Gateway, platform: Platform) -> bool:
    """Return whether the setting changed after the gateway started, so it cannot know it."""
    place = platform.because.rpartition(" in ")[2]
    file = {".env": probes.env, "config.yaml": probes.config}.get(place)
    found = file() if file else None
    return found is not None and found.snapshot.mtime_ns / 1e9 >= gateway.started_at.timestamp()


def _words(probes: Probes, gateway: Gateway, platform: Platform) -> list[Word]:
    """Return the log entries of a platform; none if the log cannot be read."""
    try:
        found = probes.last_words(gateway)
    except CouldNotLook:
        return []
    return [word for word in found if platform.name in word.logger]
