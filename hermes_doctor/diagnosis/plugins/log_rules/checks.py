"""Turn a folder of log rules into one check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from stat import S_ISDIR
from typing import TYPE_CHECKING

from hermes_doctor.core.model import CouldNotLook, Finding, Partly, Skip
from hermes_doctor.core.system import looked_at
from hermes_doctor.core.system.files import list_folder, reason
from hermes_doctor.diagnosis.plugins.declare import Check

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.plugins.log_rules.folder import Folder
    from hermes_doctor.diagnosis.plugins.log_rules.incident import Incident
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.hermes.settings.resolved import Resolved, Route

ID = "log-rules"
GROUP = "logs"
STARTS = "gateway-starts.log"
"""The only record outside of logs/; a profile's s6-log output is in the root home."""
QUESTION = "Do the logs show a problem that is not over?"


def check_of(id: str, folder: Folder) -> Check:
    """Return the check that applies the rules of a folder."""
    return Check(id, GROUP, folder.codes, QUESTION, lambda probes: _look(probes, folder), 5.0)


def _look(probes: Probes, folder: Folder) -> Iterator[Finding | CouldNotLook | Partly]:
    _there(probes.home / "logs")
    if _is_silent(probes):
        raise Skip("no log yet")
    from hermes_doctor.diagnosis.plugins.log_rules.ask_logs import ask

    asked = ask(probes, folder.rule_set.rules, folder.reader, folder.symptoms)
    looked_at.note_moment(asked.until)
    if any(incident.cleared_at is None for incident in asked.incidents):
        from hermes_doctor.diagnosis.plugins.log_rules.findings import findings

        yield from findings(_with_names(probes, asked.incidents), asked.where)
    for source, why, partly in asked.unread:
        yield (
            Partly(f"{source}: {why}")
            if partly
            else CouldNotLook("{source}: {reason}", source=source, reason=why)
        )


def _with_names(probes: Probes, incidents: Iterable[Incident]) -> Iterator[Incident]:
    """Add what only the settings say: the operator's name of a provider, and where its key is."""
    for incident in incidents:
        open_incident = incident
        if open_incident.cleared_at is not None:
            yield open_incident
            continue
        provider, route = open_incident.key.get("provider"), None
        if provider is not None and (resolved := _settings(probes)):
            from hermes_doctor.diagnosis.plugins.log_rules.failed_route import with_route

            open_incident, route = with_route(open_incident, resolved)
            ways = [route] if route else [resolved.main, *resolved.fallback]
            names = {way.operators_name for way in ways} - {""}
            if provider == "custom" and len(names) == 1:
                open_incident = open_incident._replace(
                    fields={**open_incident.fields, "provider": names.pop()}
                )
        more = dict(open_incident.fields)
        if "{key}" in open_incident.rule.next and (place := _place_of_key(probes, provider, route)):
            more["key"] = place
        yield open_incident._replace(fields=more)


def _settings(probes: Probes) -> Resolved | None:
    try:
        return probes.settings.resolved()
    except CouldNotLook:
        return None


def _place_of_key(probes: Probes, provider: str | None, route: Route | None) -> str:
    """Where the key of a provider is set; empty if that is unknown or not one single place."""
    from hermes_doctor.hermes.settings.sourced_text import CONFIG, ENV

    resolved = _settings(probes)
    if resolved is None:
        return ""
    sources = {
        way.key.source.via or way.key.source
        for way in ([route] if route else [resolved.main, *resolved.fallback])
        if way.key and way.provider and provider in ("", None, way.provider.value)
    }
    if len(sources) != 1:
        return ""
    source = sources.pop()
    return f"`{source.name}` in {source.place}" if source.kind in (CONFIG, ENV) else ""


def _is_silent(probes: Probes) -> bool:
    """Tell whether there is no log yet, so that the rules need not be loaded."""
    try:
        written = list_folder(probes.home / "logs") or (probes.home / STARTS).exists()
        return (
            not written and not probes.home.profile and probes.gateway.supervision().owner is None
        )
    except (CouldNotLook, OSError):
        return False


def _there(logs: Path) -> None:
    """Raise Skip or CouldNotLook unless the logs folder can be read."""
    try:
        kind = logs.stat().st_mode
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError) and not logs.is_symlink():
            raise Skip("no log yet") from None
        raise CouldNotLook("logs: {reason}", reason=reason(error, logs)) from None
    if not S_ISDIR(kind):
        raise CouldNotLook("logs: not a folder")
