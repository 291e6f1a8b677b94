"""Declare checks and fixes, and what the home must have for a check to be loaded."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CouldNotLook, Finding, Partly, Safety
from hermes_doctor.diagnosis.probes.probes import Probes

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.step import Step

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


Look = Callable[[Probes], Iterable[Finding | CouldNotLook | Partly]]
Plan = Callable[[Probes, Finding], "Iterable[Step]"]
_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_CODE = re.compile(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)*")


class Check(NamedTuple):
    """A check: a function that answers one question about a home with findings."""

    id: str
    group: str
    codes: tuple[str, ...]
    question: str
    look: Look
    limit: float
    by_release: tuple[str, ...] = ()
    """The codes that depend on knowledge about Hermes releases; skipped on newer releases."""
    needs: str = ""
    """What the home must have for the question to make sense (see `NEEDS`); empty for nothing."""


class Fix(NamedTuple):
    """A fix: a function that plans the steps that repair one finding."""

    id: str
    codes: tuple[str, ...]
    safety: Safety
    title: str
    plan: Plan
    then: str | None = None
    """The id of the fix to try next when this one is not enough."""
    unattended: bool = False
    """`watch --heal` may apply it without asking, within its budget, although `fix` asks first."""
    personal: bool = False
    """Grants access; applied only when this subject is named explicitly."""
    optional: bool = False
    """Not needed by anything; applied only when its code is named explicitly."""
    structural: bool = False
    """Changes a database's structure; refused on a Hermes release newer than this tool knows."""
    gives_up_data: bool = False
    """Starts without data that cannot be saved; a watch never applies it."""


def check(
    *,
    id: str,
    group: str,
    codes: Sequence[str],
    limit: float = 5.0,
    by_release: bool | Sequence[str] = False,
    needs: str = "",
) -> Callable[[Look], Check]:
    """Declare a function as a check; the first line of its docstring is the question it answers.

    `by_release` lists the codes that depend on what this tool knows about Hermes releases; True
    means all of them. On a release newer than that, they are skipped. `needs` names what the home
    must have, one of `NEEDS` or a platform; without it the check is skipped, not called.
    """
    _names(id, group, codes)
    if needs and not is_known(needs):
        raise ValueError(f"{id} needs {needs!r}, which is not one of {', '.join(NEEDS)}")
    rest = tuple(codes if by_release is True else by_release or ())
    if not set(rest) <= set(codes):
        raise ValueError(f"{id} does not declare every code of its by_release")

    def decorate(look: Look) -> Check:
        return Check(id, group, tuple(codes), _first_line(look), look, limit, rest, needs)

    return decorate


def fix(
    *,
    id: str,
    codes: Sequence[str],
    safety: Safety,
    then: str | None = None,
    unattended: bool = False,
    personal: bool = False,
    optional: bool = False,
    structural: bool = False,
    gives_up_data: bool = False,
) -> Callable[[Plan], Fix]:
    """Declare a function as a fix; the first line of its docstring says what it does.

    A fix does no more than its `safety` announces. When that turns out not to be enough, `then`
    names the fix to try next, which asks for its own confirmation.
    """
    _names(id, then or id, codes)

    def decorate(plan: Plan) -> Fix:
        title = _first_line(plan)
        return Fix(
            id,
            tuple(codes),
            safety,
            title,
            plan,
            then,
            unattended,
            personal,
            optional=optional,
            structural=structural,
            gives_up_data=gives_up_data,
        )

    return decorate


def _names(id: str, group: str, codes: Sequence[str]) -> None:
    for name, form in [(id, _ID), (group, _ID), *((code, _CODE) for code in codes)]:
        if not form.fullmatch(name):
            raise ValueError(f"{name!r} does not match {form.pattern}")
    if not codes:
        raise ValueError(f"{id} names no code")


def _first_line(function: Callable[..., object]) -> str:
    doc = (function.__doc__ or "").strip()
    if not doc and sys.flags.optimize >= 2:  # Python has dropped all docstrings
        doc = _docstring_in_source(function) or function.__name__.replace("_", " ")
    if not doc:
        raise ValueError(f"{function.__name__} needs a docstring: its first line is shown")
    return doc.splitlines()[0]


def _docstring_in_source(function: Callable[..., object]) -> str:
    """Read the first line of a docstring from the source file; empty if there is none."""
    import linecache

    code = function.__code__
    number = code.co_firstlineno
    while line := linecache.getline(code.co_filename, number):
        number += 1
        if line.lstrip().startswith('"""'):
            return line.strip().strip('"').strip()
    return ""
