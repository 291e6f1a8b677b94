"""Turn a folder of log rules into one check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from stat import S_ISDIR
from typing import TYPE_CHECKING

from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook, Finding, Partly, Skip
from hermes_doctor.plugins.declare import Check
from hermes_doctor.system.files import list_folder, reason

if TYPE_CHECKING:
    from hermes_doctor.plugins.log_rules.folder import Folder
    from hermes_doctor.plugins.log_rules.incident import Incident
    from hermes_doctor.probes.probes import Probes

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
    from hermes_doctor.plugins.log_rules.ask_logs import ask

    asked = ask(probes, folder.rule_set.rules)
    if any(one.cleared_at is None for one in asked.incidents):
        from hermes_doctor.plugins.log_rules.findings import findings

        yield from findings(_with_names(probes, asked.incidents), asked.where)
    for source, why, partly in asked.unread:
        yield (
            Partly(f"{source}: {why}")
            if partly
            else CouldNotLook(text("{source}: {reason}", source=source, reason=why))
        )


def _with_names(probes: Probes, incidents: Iterable[Incident]) -> Iterator[Incident]:
    """Add what only the settings say: the operator's name of a provider, and where its key is."""
    for one in incidents:
        if one.cleared_at is not None:
            yield one
            continue
        provider, more = one.key.get("provider"), dict(one.fields)
        if provider == "custom":
            found = probes.resolved()
            names = {way.operators_name for way in (found.main, *found.fallback)} - {""}
            if len(names) == 1:
                more["provider"] = names.pop()
        if "{key}" in one.rule.next and (place := _place_of_key(probes, provider)):
            more["key"] = place
        yield one._replace(fields=more)


def _place_of_key(probes: Probes, provider: str | None) -> str:
    """Where the key of a provider is set; empty if that is unknown or not one single place."""
    from hermes_doctor.settings.sourced_text import CONFIG, ENV

    try:
        found = probes.resolved()
    except CouldNotLook:
        return ""
    sources = {
        way.key.source.via or way.key.source
        for way in (found.main, *found.fallback)
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
        return not written and not probes.home.profile and probes.supervision().owner is None
    except (CouldNotLook, OSError):
        return False


def _there(logs: Path) -> None:
    """Raise Skip or CouldNotLook unless the logs folder can be read."""
    try:
        kind = logs.stat().st_mode
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError) and not logs.is_symlink():
            raise Skip("no log yet") from None
        raise CouldNotLook(text("logs: {reason}", reason=reason(error, logs))) from None
    if not S_ISDIR(kind):
        raise CouldNotLook("logs: not a folder")
