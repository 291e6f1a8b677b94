"""Read the result of the last `ask` of a home, as long as it still says something.

It does until the gateway is restarted, a settings file is changed, the route is changed otherwise,
or an hour has passed. A failure is over as soon as the logs show a later success.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hermes_doctor.lazy import pattern
from hermes_doctor.logs.entry import LogEntry
from hermes_doctor.supervisors.job_names import state_folder
from hermes_doctor.system import root_parent

if TYPE_CHECKING:
    from hermes_doctor.probes.configured import ConfiguredProbes
    from hermes_doctor.records.last_ask import AskRecord

FRESH = 3600.0
"""Seconds for which a result is used."""
SKEW = 5.0
"""Seconds that the clock may have been set back."""
START = timedelta(seconds=2)
"""How exactly the start of a process is known. A gateway cannot answer so soon after it."""
TAIL = 1024 * 1024
"""Bytes at the end of the log in which a later success is looked for."""
FILES = ("config.yaml", ".env", "auth.json")
_SUCCESS = pattern(
    r"API call #\d+: model=(?P<model>\S*) provider="
    r"|Turn ended: reason=text_response\S* model=(?P<turn>\S*) "
)
_LOGGERS = ("agent.conversation_loop", "run_agent")


def read(probes: ConfiguredProbes) -> AskRecord | None:
    """Return the result if it is fresh; None if there is none or if it is outdated."""
    try:
        if not root_parent.is_separate() and not any(
            name.startswith("ask-") for name in os.listdir(state_folder())
        ):
            return None  # most homes; building the name of its file takes 5 ms
    except OSError:
        return None
    from hermes_doctor.records import last_ask

    found = last_ask.load(probes.home)
    if found is None or not _is_fresh(probes, found) or not _is_same_route(probes, found):
        return None
    return None if not found.is_fine and _succeeded_since(probes, found) else found


def _is_fresh(probes: ConfiguredProbes, found: AskRecord) -> bool:
    age = (datetime.now(UTC) - found.at).total_seconds()
    if not -SKEW <= age <= FRESH:
        return False
    if any(one.started_at + START > found.at for one in probes.gateways()):
        return False
    moments = (probes.modified(probes.home / name) for name in FILES)
    return all(moment is None or moment <= found.at for moment in moments)


def _is_same_route(probes: ConfiguredProbes, found: AskRecord) -> bool:
    """Tell whether the route that was asked first is still set up; variables may have changed."""
    from hermes_doctor.probes.network.provider_trial import name_of
    from hermes_doctor.redaction import redact_words

    resolved, asked = probes.resolved(), found.attempts[0]
    now = (resolved.main, *resolved.fallback, *((resolved.used,) if resolved.used else ()))
    return any(
        (redact_words(name_of(one)), redact_words(one.model.value or ""))
        == (asked.name, asked.model)
        for one in now
    )


def _succeeded_since(probes: ConfiguredProbes, found: AskRecord) -> bool:
    """Tell whether the gateway's log shows a later answer of a model that failed here."""
    from hermes_doctor.logs import tail

    models = {one.model for one in found.attempts}
    since = found.at.timestamp()
    later = tail.entries(probes.home, "agent.log", TAIL, since=since, wanted=_of_model)
    return any(entry.at > since and _model(entry) in models for entry in later)


def _of_model(_level: str, logger: str) -> bool:
    return logger.startswith(_LOGGERS)


def _model(entry: LogEntry) -> str | None:
    match = _SUCCESS.match(entry.text)
    return match and (match["model"] or match["turn"])
