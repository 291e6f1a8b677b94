"""What a check can need: a check whose subject is absent is skipped without being loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import text

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.probes.probes import Probes

PLATFORM = "platform:"
"""Followed by the name of a platform, as in `platform:telegram`."""


class Need(NamedTuple):
    """Something that a home may have or not."""

    is_there: Callable[[Probes], object]
    why_not: str
    """The reason for skipping a check that needs it."""
    option: bool = False
    """Whether an option of the command provides it, and not the home."""


NEEDS = {
    "gateway": Need(lambda probes: probes.gateway.running(), "no gateway is running"),
    "network": Need(lambda probes: probes.network, "needs --network", option=True),
    "ask": Need(
        lambda probes: probes.health.last_ask() is not None, "no recent `hermes-doctor ask`"
    ),
    "service": Need(
        lambda probes: probes.gateway.supervision().units, "no service for the gateway"
    ),
    "env": Need(lambda probes: probes.settings.env() is not None, "no .env"),
    "jobs": Need(
        lambda probes: probes.stores.jobs(), "no scheduled jobs, or their list cannot be read"
    ),
    "kanban": Need(
        lambda probes: any(path.name == "kanban.db" for path in probes.databases.files().paths),
        "no kanban board",
    ),
    "profile": Need(lambda probes: probes.home.profile is not None, "this is not a profile"),
    "hermes": Need(lambda probes: probes.hermes.installation(), "no installed Hermes was found"),
    "platform": Need(lambda probes: probes.settings.platforms(), "no platform is set up"),
    "bot": Need(
        lambda probes: any(platform.lock for platform in probes.settings.platforms()),
        "no platform with its own bot is set up",
    ),
    "environment": Need(
        lambda probes: probes.hermes.environments().found,
        "no virtual environment of Hermes was found",
    ),
    "gateway.json": Need(
        lambda probes: probes.settings.gateway_json() is not None, "no gateway.json"
    ),
    "gateway log": Need(
        lambda probes: probes.logs.traffic_since() is not None, "no log of the gateway yet"
    ),
    "guarded update": Need(
        lambda probes: probes.records.guarded_update() is not None, "no update by hermes-doctor yet"
    ),
    "last life": Need(
        lambda probes: probes.gateway.runtime().ledger is not None,
        "this release does not record how a gateway ended, or none has run",
    ),
    "pairing": Need(lambda probes: probes.stores.pairing().is_used, "no user was ever paired here"),
    "refusals": Need(lambda probes: probes.logs.refusals(), "the logs show no refused user"),
    "response_store.db": Need(
        lambda probes: (probes.home / "response_store.db") in probes.databases.files().paths,
        "no response_store.db yet",
    ),
    "saved log": Need(
        lambda probes: probes.records.saved_logs(),
        "no backup has rows of a deleted write-ahead log (-wal)",
    ),
    "update log": Need(
        lambda probes: probes.hermes.update_run() is not None, "no log of an update by Hermes"
    ),
    "update receipt": Need(
        lambda probes: (
            probes.hermes.update_receipt() is not None
            or probes.hermes.pending_restart() is not None
        ),
        "this Hermes has written no receipt of an update",
    ),
}


def is_known(need: str) -> bool:
    """Whether a check may declare this need."""
    return need in NEEDS or (need.startswith(PLATFORM) and need != PLATFORM)


def is_option(need: str) -> bool:
    """Whether an option of the command provides what a check needs."""
    return need in NEEDS and NEEDS[need].option


def why_absent(probes: Probes, need: str) -> str | None:
    """Why a check with this need does not apply to the home; None if it does.

    Raises `CouldNotLook` if that is unknown.
    """
    if not need:
        return None
    if need.startswith(PLATFORM):
        name = need.removeprefix(PLATFORM)
        if any(platform.name == name for platform in probes.settings.platforms()):
            return None
        return text("the platform {name} is not set up", name=name)
    found = NEEDS[need]
    return None if found.is_there(probes) else found.why_not
