"""Check for platforms on which nobody gets an answer, although nothing reports an error."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.providers import is_unset
from hermes_doctor.api.settings import Platform
from hermes_doctor.api.tools import clock, count, duration, listed

_SHOWN = 3


@check(id="no-platform", group="platforms", codes=["PLATFORM-NONE"], by_release=True)
def no_platform(probes: Probes) -> Iterator[Finding]:
    """Can people still reach a bot that they used?"""
    if probes.settings.platforms():
        return
    if unreadable := probes.settings.effective().unreadable:
        raise CouldNotLook(unreadable[0])
    if probes.gateway.served_by() is not None:
        raise Skip("the gateway of the root home serves this profile")
    used = probes.stores.earlier_platforms()
    if not used:
        raise Skip("no platform was ever used here")
    variables = [name for earlier_platform in used for name in earlier_platform.variables]
    sure = is_unset(probes, *variables)
    labels = listed([one.label for one in used[:_SHOWN]])
    yield Finding(
        code="PLATFORM-NONE",
        severity=Severity.ERROR if sure else Severity.WARNING,
        title="no platform is switched on any more",
        subject="platforms",
        detail=text(
            "Nobody can reach the bot. It was used on {platforms}, but no token for it is set.",
            platforms=labels,
        )
        if sure
        else text(
            "It was used on {platforms}. Nobody can reach the bot unless a service sets the token.",
            platforms=labels,
        ),
        evidence=tuple(Evidence(one.where, f"{one.label}: {one.what}") for one in used[:_SHOWN]),
        next=text(
            "Set {variables} in .env again, or mute this if you stopped using the bot.",
            variables=listed(list(used[0].variables)),
        ),
    )


_DAY = 86_400.0
_SHORTEST = 3 * 3600.0
"""A shorter silence says nothing."""
_LATEST = 3600.0
"""The log must have lines from the last hour, so the gateway was working."""
_DAYS, _MOST_DAYS = 3, 7
_FEWEST = 3
"""Messages that came in at the same time on each of the days before."""


@check(id="quiet-platforms", group="connections", codes=["PLATFORM-DEAF"], needs="gateway log")
def quiet_platforms(probes: Probes) -> Iterator[Finding]:
    """Do users still write on every platform at their usual times?"""
    begin = probes.logs.traffic_since()
    assert begin is not None
    if time.time() - begin < _DAYS * _DAY:
        raise Skip("the log does not cover enough days to compare")
    traffic = probes.logs.traffic()
    first, last = traffic.covers or (begin, begin)
    if last - first < _DAYS * _DAY or not 0 <= time.time() - last < _LATEST:
        raise Skip("the log does not cover enough days to compare")
    for platform in probes.settings.platforms():
        times = traffic.inbound.get(platform.name, ())
        if times and last - times[-1] >= _SHORTEST:
            usual = _usual(times, times[-1], last, first)
            if _is_unusual(usual, last):
                yield _finding(platform, times[-1], last, usual)


def _usual(times: tuple[float, ...], begin: float, end: float, first: float) -> list[int]:
    """Return how many messages came in at the same time of day on each of the days before."""
    found = []
    for day in range(1, _MOST_DAYS + 1):
        since, until = begin - day * _DAY, end - day * _DAY
        if since < first:
            break
        found.append(sum(since < at <= until for at in times))
    return found


def _is_unusual(usual: list[int], last: float) -> bool:
    """Tell whether silence is unusual; weekdays say nothing about a weekend, and vice versa."""
    days = (last - day * _DAY for day in range(1, len(usual) + 1))
    known = any(_is_weekend(day) == _is_weekend(last) for day in days)
    return known and len(usual) >= _DAYS and min(usual) >= _FEWEST


def _is_weekend(at: float) -> bool:
    return time.localtime(at).tm_wday >= 5


def _finding(platform: Platform, since: float, until: float, usual: list[int]) -> Finding:
    begin = datetime.fromtimestamp(since, UTC)
    return Finding(
        code="PLATFORM-DEAF",
        severity=Severity.WARNING,
        title=text("{platform} has been unusually quiet", platform=platform.label),
        subject=platform.name,
        detail=text(
            "Users of {platform} may get no answer. The gateway works and reports no "
            "error; the connection may be dead.",
            platform=platform.label,
        ),
        evidence=(
            Evidence(
                "logs/gateway.log",
                text(
                    "no message for {period} since {time}",
                    period=duration(until - since),
                    time=clock(begin),
                ),
            ),
            Evidence(
                "logs/gateway.log",
                text(
                    "at least {messages} at this time on each of the {days} before",
                    messages=count(min(usual), "message"),
                    days=count(len(usual), "day"),
                ),
            ),
        ),
        since=begin,
        next=text(
            "Send the bot a message on {platform}; if it does not answer, restart the gateway.",
            platform=platform.label,
        ),
        data={"platform": platform.name},
    )
