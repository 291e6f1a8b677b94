"""Scheduled jobs, what they need to run and deliver, and the ticker that starts them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from hermes_doctor.core import redaction
from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.message import shorten
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import read
from hermes_doctor.hermes.knowledge import parse_release
from hermes_doctor.hermes.knowledge.releases import load_knowledge
from hermes_doctor.hermes.processes.runtime_files import parse_epoch
from hermes_doctor.hermes.settings.inputs import Settings
from hermes_doctor.hermes.stores.catalogue import AGAIN, WHOLE
from hermes_doctor.hermes.stores.store_file import StoreFile

MOST = 500
LONGEST = 60
EVERYWHERE = "*"
"""Stands for all platforms that have a home channel."""
_ZONES = ("/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo")


_MARK = pattern(r"^(?:RuntimeError: )?\[(?:blocked_config|drift_skip)[^\]]{0,20}\]\s*")
"""The mark with which Hermes 0.20.1 and later begins the reason for skipping a run."""
_DRIFT = "Skipped to prevent unintended spend"
"""The reason for skipping a run after a change of the model (0.18 and later)."""
_UTC = frozenset({"UTC", "UTC0", "UCT", "GMT", "GMT0", "Universal", "Zulu", "Greenwich"})


class MissedStart(NamedTuple):
    """A start of a job that failed, so there was no run (0.20.3 and later)."""

    at: datetime
    detail: str
    """Why, in the words of Hermes; may contain anything."""

    @property
    def why(self) -> str:
        """Why, redacted for display."""
        return shorten(redaction.redact_words(self.detail.partition("\n")[0]), 200)


class CronJob(NamedTuple):
    """A scheduled job that is enabled."""

    id: str
    called: str
    """Its name as its creator wrote it; may contain anything."""
    kind: str
    """`cron` (a time of day), `interval` or `once`; empty if unknown."""
    next_run: datetime | None
    offset: bool
    """Whether the time of its next run has a UTC offset."""
    ran: bool
    deliver: tuple[str, ...]
    origin: str | None
    """The platform of the chat in which it was created."""
    script: str | None
    undelivered: bool
    """Whether its last result could not be delivered."""
    failed: str
    """The error of its last run; empty if that succeeded or was skipped."""
    claimed: datetime | None
    """Since when a run is in progress, according to the file."""
    missed: datetime | None = None
    """When a one-time job should have run, if it has not run and no run is planned."""
    senseless: bool = False
    """Whether its schedule gives no time to run."""
    last_run: datetime | None = None
    """When its last run ended."""
    streak: int = 0
    """How many runs in a row failed (0.20.3 and later); 0 if Hermes did not count."""
    skipped: str = ""
    """Why Hermes skipped its last run before it called the model; empty if it did not."""
    not_started: MissedStart | None = None
    """Its last start, if that failed and no run followed."""
    unplanned: bool = False
    """Whether Hermes could not calculate the next run of a job that repeats."""

    @property
    def error(self) -> str:
        """The error of its last run, or why it was skipped, redacted for display."""
        words = _MARK.sub("", (self.failed or self.skipped).partition("\n")[0])
        return shorten(redaction.redact_words(words), 200)

    @property
    def name(self) -> str:
        """Its name, redacted for display."""
        return redaction.redact_words(self.called)[:LONGEST]


class Ticker(NamedTuple):
    """When the gateway's ticker last looked for jobs (once a minute); recorded since 0.18."""

    last_tick: datetime | None
    last_success: datetime | None


class UndeliverableTarget(NamedTuple):
    """A target to which the result of a job cannot be delivered, and why."""

    what: str
    """A platform, or a word that stands for several."""
    why: str
    variable: str | None = None
    """The variable that should name the chat and is not set."""


def jobs(file: StoreFile | None) -> list[CronJob]:
    """Return the enabled jobs of a list that can be read."""
    values = file.values if file and file.outcome in (WHOLE, AGAIN) else None
    found = values.get("jobs") if isinstance(values, dict) else values
    every = found if isinstance(found, list) else []
    return [
        _job(one)
        for one in every[:MOST]
        if isinstance(one, dict)
        and (bool(one.get("enabled", True)) and one.get("state") not in ("paused", "completed"))
    ]


def _job(said: Mapping[str, Any]) -> CronJob:
    from hermes_doctor.hermes.stores.damage import has_no_next_run

    schedule = said.get("schedule")
    kind = schedule.get("kind") if isinstance(schedule, dict) else None
    at = _time(said.get("next_run_at"))
    origin, claim = said.get("origin"), said.get("run_claim")
    home = origin if isinstance(origin, dict) and origin.get("chat_id") else {}
    script = said.get("script")
    claimed = _time(claim.get("at")) if isinstance(claim, dict) else None
    last, streak = _time(said.get("last_run_at")), said.get("failure_streak")
    failed, skipped = _result(said)
    deliver = said.get("deliver")
    words = deliver if isinstance(deliver, list) else str(deliver or "local").split(",")
    return CronJob(
        id=str(said.get("id") or "")[:LONGEST],
        called=str(said.get("name") or said.get("id") or "without a name"),
        kind=kind if isinstance(kind, str) else "",
        next_run=at and _aware(at),
        offset=bool(at and at.tzinfo),
        ran=bool(said.get("last_run_at")),
        deliver=tuple(str(word).strip() for word in words[:20] if str(word).strip()),
        origin=str(home["platform"]) if home.get("platform") else None,
        script=script if isinstance(script, str) and script.strip() else None,
        undelivered=bool(said.get("last_delivery_error"))
        or said.get("last_status") == "delivery_failed",
        failed=failed,
        claimed=claimed and _aware(claimed),
        missed=_missed(said),
        senseless=isinstance(schedule, dict) and has_no_next_run(schedule),
        last_run=last and _aware(last),
        streak=streak if isinstance(streak, int) and 0 < streak < 10**6 else 0,
        skipped=skipped,
        not_started=_missed_start(said, last and _aware(last)),
        unplanned=said.get("state") == "error" and kind in ("cron", "interval") and at is None,
    )


def _result(said: Mapping[str, Any]) -> tuple[str, str]:
    """Return the error of the last run, or why it was skipped; both may contain anything."""
    status, error = said.get("last_status"), said.get("last_error")
    lost = said.get("state") == "error" and not said.get("next_run_at")
    if status not in ("error", "blocked_config") and not lost:
        return "", ""
    words = str(error)[:MOST] if error else "without a reason"
    if status == "blocked_config" or _MARK.match(words) or _DRIFT in words:
        return "", words
    return words, ""


def _missed_start(said: Mapping[str, Any], last: datetime | None) -> MissedStart | None:
    """Return the start that failed; a later run proves that the job is started again."""
    error = said.get("last_fire_error")
    detail = error.get("detail") if isinstance(error, dict) else None
    when = _time(error.get("at")) if isinstance(error, dict) else None
    if when is None or not detail or (last is not None and _aware(when) <= last):
        return None
    return MissedStart(_aware(when), str(detail)[:MOST])


def _missed(said: Mapping[str, Any]) -> datetime | None:
    schedule = said.get("schedule")
    if not isinstance(schedule, dict) or schedule.get("kind") != "once":
        return None
    wanted = _time(schedule.get("run_at"))
    planned = said.get("next_run_at") or said.get("last_run_at") or said.get("run_claim")
    return _aware(wanted) if wanted and not planned else None


def _time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _aware(moment: datetime) -> datetime:
    """Interpret a time without a zone as local time."""
    try:
        return moment if moment.tzinfo else moment.astimezone()
    except (OverflowError, ValueError, OSError):
        return moment.replace(tzinfo=datetime.now().astimezone().tzinfo)


def ticker(home: Home) -> Ticker:
    """Read when the ticker last ran and when it last succeeded."""
    return Ticker(_epoch(home / "cron/ticker_heartbeat"), _epoch(home / "cron/ticker_last_success"))


def _epoch(path: Path) -> datetime | None:
    try:
        return parse_epoch(read(path, 100)[0].decode("ascii", "replace").strip())
    except (FileNotFoundError, CouldNotLook):
        return None


def undeliverable(
    jobs: Iterable[CronJob],
    settings: Settings,
    platforms: frozenset[str],
    installed: tuple[int, ...] | None,
) -> list[tuple[CronJob, UndeliverableTarget]]:
    """Return every target to which a job's result cannot be delivered."""
    known = {name: form for name in load_knowledge("cron") if (form := _form(name, installed))}
    parts = ((job, part) for job in jobs for part in job.deliver)
    asked = ((job, _lost(part, job, settings, platforms, known)) for job, part in parts)
    return [(job, lost) for job, lost in asked if lost]


def _form(name: str, installed: tuple[int, ...] | None) -> list[str] | None:
    """Return the variables of a platform's home channel in this release; None if it is unknown."""
    since: Mapping[str, list[str] | None] = load_knowledge("cron")[name]
    dated = sorted((parse_release(version), version) for version in since)
    fitting = [since[version] for number, version in dated if not installed or number <= installed]
    found = fitting[-1] if fitting else None
    return None if found is None else found or [""]


def _lost(
    part: str,
    job: CronJob,
    settings: Settings,
    platforms: frozenset[str],
    known: Mapping[str, list[str]],
) -> UndeliverableTarget | None:
    """Return why nothing arrives there; an unknown name may belong to a plugin of Hermes."""
    name, named, _ = part.partition(":")
    own = name == job.origin
    if part == "origin" and job.origin:
        name, own = job.origin, True
    elif part == "origin" or known.get(name.lower()) == [EVERYWHERE]:
        reached = any(_home(settings, forms) for forms in known.values())
        return None if reached else UndeliverableTarget(part, "no platform has a home channel")
    name, forms = name.lower(), known.get(name.lower())
    if forms is None:
        return None
    if name not in platforms and name in load_knowledge("enabling"):
        return UndeliverableTarget(name, "this platform is not set up")
    if named or own or _home(settings, forms):
        return None
    return UndeliverableTarget(
        name, f"no {forms[0]}" if forms[0] else "no home channel", forms[0] or None
    )


def _home(settings: Settings, variables: list[str]) -> bool:
    """Tell whether a platform has a home channel that jobs use.

    Jobs read variables only, never the block of a platform; but when a gateway starts, it turns
    keys of config.yaml that are named like a variable into variables.
    """
    written = (settings.config.get(name) for name in variables)
    return any(map(settings.value, variables)) or any(
        isinstance(value, str | int | float) and bool(str(value).strip()) for value in written
    )


def script_fault(home: Home, script: str) -> str | None:
    """Return why a job's script cannot be run; None if it can."""
    folder = os.path.realpath(home / "scripts")
    try:
        place = os.path.realpath(os.path.join(folder, os.path.expanduser(script)))
        if place != folder and not place.startswith(folder + os.sep):
            return "it is outside of scripts/, where Hermes does not run any"
        if not os.path.exists(place):
            return "it is missing in scripts/"
        return None if os.path.isfile(place) else "it is not a file"
    except (OSError, ValueError):
        return "its name is not valid"


def is_zone_known(name: str, library: Path | None) -> bool:
    """Tell whether the machine or the installed Hermes knows a time zone; True if unsure."""
    places = [Path(place) for place in _ZONES if os.path.isdir(place)]
    places += [library / "zoneinfo"] if library else []
    if not places:
        return True
    plain = all(part and not part.startswith(".") for part in name.split("/"))
    return plain and any(os.path.isfile(place / name) for place in places)


def is_clock_utc(settings: Settings, *, running: bool) -> bool:
    """Tell whether the gateway's clock is in UTC; our own TZ is not the gateway's."""
    import time

    zone = settings.value("TZ").lstrip(":")
    if not zone and running and "TZ" in os.environ:
        zone = os.path.realpath("/etc/localtime")
        zone = zone if os.path.exists(zone) else "UTC"
    if zone:
        return zone.rpartition("/")[2] in _UTC
    return time.timezone == 0 and not time.daylight
