"""Sums up a history: availability, days, recurring problems, and what followed updates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.operations.history.layout import DAY, HOUR
from hermes_doctor.operations.history.reading import Episode, HistoryMark, HistoryRows, HourShare

AFTER_UPDATE = DAY
"""A problem that appears within this time after an update is listed with it."""
BEFORE_UPDATE = 7 * DAY
"""Unless it was there in this time before the update."""


class Shares(NamedTuple):
    """Seconds in each condition; unknown is the time that nobody watched."""

    working: int = 0
    limited: int = 0
    silent: int = 0
    unknown: int = 0

    @property
    def watched(self) -> int:
        """Seconds in which the condition of the bot was known."""
        return self.working + self.limited + self.silent

    @property
    def percent(self) -> float | None:
        """In how much of the watched time the bot answered; None if it was never watched."""
        return 100 * (self.working + self.limited) / self.watched if self.watched else None


class DayShares(NamedTuple):
    """One local day."""

    day: date
    shares: Shares


class Recurring(NamedTuple):
    """A problem that came more than once."""

    code: str
    subject: str
    title: str
    severity: str
    times: int
    last: int
    """When it began the last time."""
    seconds: int


class Appeared(NamedTuple):
    """A problem that appeared after an update; one need not be the cause of the other."""

    update: HistoryMark
    episode: Episode

    @property
    def seconds(self) -> int:
        """The time between the two."""
        return self.episode.first_seen - self.update.at


def total(rows: HistoryRows, since: int, now: int) -> Shares:
    """The shares of the time since a moment, or since the first record if that is later."""
    every_day = days(rows, local(since).date(), since, now)
    return _plus(day.shares for day in every_day)


def days(rows: HistoryRows, first: date, since: int, now: int) -> list[DayShares]:
    """Each local day from the first one until today; time before the first record is left out."""
    since = max(since, rows.first_seen)
    by_day: dict[date, list[HourShare]] = {}
    for hour in rows.hours:
        day = local(max(hour.hour, since)).date()
        by_day.setdefault(max(first, day), []).append(hour)
    every_day = []
    today = local(now).date()
    while first <= today:
        begin, end = (_midnight(first + timedelta(days=number)) for number in (0, 1))
        counted = _sum(by_day.get(first, ()))
        unknown = max(0, min(now, end) - max(begin, since) - counted.watched)
        every_day.append(DayShares(first, counted._replace(unknown=unknown)))
        first += timedelta(days=1)
    return every_day


def recurring(episodes: Sequence[Episode], now: int) -> list[Recurring]:
    """The problems that came more than once, most often first."""
    by_key: dict[tuple[str, str], list[Episode]] = {}
    for episode in episodes:
        by_key.setdefault((episode.code, episode.subject), []).append(episode)
    problems = [
        Recurring(
            code=key[0],
            subject=key[1],
            title=same[-1].title,
            severity=same[-1].severity,
            times=sum(1 + episode.returns for episode in same),
            last=same[-1].first_seen,
            seconds=sum(episode.seconds(now) for episode in same),
        )
        for key, same in by_key.items()
    ]
    often = [problem for problem in problems if problem.times > 1]
    return sorted(
        often, key=lambda problem: (-problem.times, -problem.seconds, problem.code, problem.subject)
    )


def appeared(rows: HistoryRows) -> list[Appeared]:
    """What appeared within a day after an update and was not there in the week before it."""
    updates = [mark for mark in rows.marks if mark.kind in ("update", "doctor")]
    after_updates = []
    for number, mark in enumerate(updates):
        end = updates[number + 1].at if number + 1 < len(updates) else mark.at + AFTER_UPDATE
        end = min(end, mark.at + AFTER_UPDATE)
        known = {
            (episode.code, episode.subject)
            for episode in rows.episodes
            if episode.first_seen < mark.at
            and (episode.ended is None or episode.ended >= mark.at - BEFORE_UPDATE)
        }
        for later in sorted(rows.episodes, key=lambda episode: episode.first_seen):
            key = (later.code, later.subject)
            if mark.at <= later.first_seen < max(end, mark.at + 1) and key not in known:
                known.add(key)
                after_updates.append(Appeared(mark, later))
    return after_updates


def local(moment: int) -> datetime:
    """A moment in the time zone of this machine."""
    try:
        return datetime.fromtimestamp(moment, UTC).astimezone()
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(moment, UTC)


def _midnight(day: date) -> int:
    return int(datetime(day.year, day.month, day.day).astimezone().timestamp())


def _sum(hours: Iterable[HourShare]) -> Shares:
    shares_of_hours = []
    for hour in hours:
        room = HOUR
        shares = []
        for seconds in (hour.working, hour.limited, hour.silent):
            shares.append(min(seconds, room))
            room -= shares[-1]
        shares_of_hours.append(Shares(*shares))
    return _plus(shares_of_hours)


def _plus(many: Iterable[Shares]) -> Shares:
    total_shares = Shares()
    for shares in many:
        total_shares = Shares(*(a + b for a, b in zip(total_shares, shares, strict=True)))
    return total_shares
