"""Read the result of the last `ask` of a home, as long as it still says something.

It does until the gateway is restarted, a settings file is changed, the route is changed otherwise,
or an hour has passed. A failure is over as soon as the logs show a later success.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hermes_doctor.core.home import state_folder
from hermes_doctor.core.lazy import pattern
from hermes_doctor.core.redaction import redact_words
from hermes_doctor.core.system import root_parent
from hermes_doctor.hermes.logs.entry import LogEntry

if TYPE_CHECKING:
    from hermes_doctor.backup.records.last_ask import AskRecord
    from hermes_doctor.core.home import Home
    from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
    from hermes_doctor.diagnosis.probes.hermes_view import SettingsView
    from hermes_doctor.diagnosis.probes.machine_view import FilesView

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


def read(files: FilesView, gateway: GatewayView, settings: SettingsView) -> AskRecord | None:
    """Return the result if it is fresh; None if there is none or if it is outdated."""
    try:
        if not root_parent.is_separate() and not any(
            name.startswith("ask-") for name in os.listdir(state_folder())
        ):
            return None  # most homes; building the name of its file takes 5 ms
    except OSError:
        return None
    from hermes_doctor.backup.records import last_ask

    record = last_ask.load(files.home)
    if (
        record is None
        or not _is_fresh(files, gateway, record)
        or not _is_same_route(settings, record)
    ):
        return None
    return None if not record.is_fine and _succeeded_since(files.home, record) else record


def _is_fresh(files: FilesView, gateway: GatewayView, record: AskRecord) -> bool:
    age = (datetime.now(UTC) - record.at).total_seconds()
    if not -SKEW <= age <= FRESH:
        return False
    if any(one.started_at + START > record.at for one in gateway.running()):
        return False
    moments = (files.modified(files.home / name) for name in FILES)
    return all(moment is None or moment <= record.at for moment in moments)


def _is_same_route(settings: SettingsView, record: AskRecord) -> bool:
    """Tell whether the route that was asked first is still set up; variables may have changed."""
    from hermes_doctor.diagnosis.probes.network.provider_trial import name_of

    resolved, asked = settings.resolved(), record.attempts[0]
    now = (resolved.main, *resolved.fallback, *((resolved.used,) if resolved.used else ()))
    return any(
        (redact_words(name_of(one)), redact_words(one.model.value or ""))
        == (asked.name, asked.model)
        for one in now
    )


def _succeeded_since(home: Home, record: AskRecord) -> bool:
    """Tell whether the gateway's log shows a later answer of a model that failed here."""
    from hermes_doctor.hermes.logs import stream

    models = {attempt.model for attempt in record.attempts}
    since = record.at.timestamp()
    later = stream.last_entries(home, "agent.log", TAIL, since=since, wanted=_of_model)
    return any(entry.at > since and _model(entry) in models for entry in later)


def _of_model(_level: str, logger: str) -> bool:
    return logger.startswith(_LOGGERS)


def _model(entry: LogEntry) -> str | None:
    match = _SUCCESS.match(entry.text)
    return match and (match["model"] or match["turn"])
