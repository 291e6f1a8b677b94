"""Turn incidents that are not over into findings, and find the model that they are about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby

from hermes_doctor.core.lazy import pattern
from hermes_doctor.core.message import (
    Message,
    clock,
    count as counted,
    duration,
    sentences,
    shorten,
    text,
)
from hermes_doctor.core.model import Evidence, Finding, Severity
from hermes_doctor.core.redaction import redact_log_text
from hermes_doctor.diagnosis.plugins.log_rules.incident import QUOTES, Incident, Quote
from hermes_doctor.diagnosis.plugins.log_rules.rule import KEYS
from hermes_doctor.hermes.logs.entry import LogEntry
from hermes_doctor.hermes.settings.resolved import Resolved, Route

_LONG, _REASON = 240, 120
_NAMED = tuple(name for name in KEYS if name != "session")
_EARLIEST, _LATEST = 86_400.0, 253_370_000_000.0
"""From 1970 to the end of 9998, so that no time zone leads outside the range of datetime."""
_PROMPTED = ("job", "task")
_IDENTIFIER = pattern(r"[\w.:-]{1,24}|[0-9a-fA-F-]{1,40}", re.ASCII)
_UNNAMED = {"provider": "the provider", "model": "the model", "key": "the key"}
"""Words for a value that neither the log line nor the settings give."""
_PLACE = pattern(r"\{(\w+)\}")


def findings(incidents: Iterable[Incident], where: Callable[[LogEntry], str]) -> Iterator[Finding]:
    """Yield findings for the open incidents; skip those that are over or may still clear."""
    open_ = [
        incident for incident in incidents if incident.cleared_at is None and not incident.pending
    ]
    open_.sort(key=_subject)
    for (_, subject), same in groupby(open_, key=_subject):
        yield _finding(list(same), subject, where)


def _subject(incident: Incident) -> tuple[str, str]:
    """Return the rule and subject of an incident's finding; sessions share one finding."""
    named = [_told(name, incident.key[name]) for name in _NAMED if name in incident.key]
    return incident.rule.id, shown(" ".join(named))


def _finding(same: list[Incident], subject: str, where: Callable[[LogEntry], str]) -> Finding:
    last = max(same, key=lambda one: one.last)
    rule = last.rule
    count = sum(open_incident.number for open_incident in same)
    sessions = {incident.key["session"] for incident in same if "session" in incident.key}
    first = min(one.first for one in same)
    quotes = sorted((q for one in same for q in one.quotes), key=lambda q: q.entry.at)
    kept = [*quotes[:1], *quotes[1:][-(QUOTES - 1) :]]
    severity = min((Severity(one.rule.severity) for one in same), key=lambda one: one.rank)
    doubt, said = last.doubtful, title(last)
    about = last.about_fallback if all(one.about_fallback for one in same) else ""
    if (doubt or last.rise or last.answered_by) and severity.rank < Severity.WARNING.rank:
        severity = Severity.WARNING
    return Finding(
        code=rule.code,
        severity=severity,
        title=Message(f"fallback: {said.template}", said.values) if about else said,
        subject=subject,
        detail=sentences(
            text("Hermes asks this fallback if the main model fails.") if about else "",
            _detail(last),
            "" if last.rise else _often(count, same, sessions),
            _doubt(doubt),
        ),
        evidence=tuple(_evidence(q, where) for q in [*_reason(last), *kept]),
        since=moment(first),
        fix=None if last.rise else rule.fix,
        caused_by=last.caused_by or None,
        next=_filled(rule.next, last),
        data={
            "rule": rule.id,
            "unless_ok": tuple(rule.unless_ok),
            "last": last.last,
            "one_chat": len(sessions) == 1,
            **({"database": rule.database} if rule.database else {}),
            **({"fallback": shown(last.answered_by)} if last.answered_by else {}),
            **({"about_fallback": shown(about)} if about else {}),
            **({"effect_of": rule.effect_of} if rule.effect_of else {}),
            **({"effect": tuple(rule.effect)} if rule.effect else {}),
            **{name: shown(_told(name, value)) for name, value in last.key.items()},
        },
    )


def _detail(incident: Incident) -> str:
    """Return the rule's detail, unless the lines show something that it does not say."""
    if incident.rise:
        return text(
            "{recent} in the last day; before that, {older} in {days}.",
            recent=counted(incident.rise.recent, "time"),
            older=counted(incident.rise.older, "time"),
            days=counted(incident.rise.days, "day"),
        )
    if incident.answered_by:
        return text(
            "The last message was answered by the fallback {model}.",
            model=shown(incident.answered_by),
        )
    return _filled(incident.rule.detail, incident)


def _reason(incident: Incident) -> list[Quote]:
    """Return what the platform's adapter said, which stands before the gateway's own lines."""
    reason = incident.reason
    if reason is None or any(reason.entry == quote.entry for quote in incident.quotes):
        return []
    return [reason]


def _evidence(quote: Quote, where: Callable[[LogEntry], str]) -> Evidence:
    told = f"{clock(moment(quote.entry.at))}  {shown(quote.text)}"
    return Evidence(where(quote.entry), told)


def _doubt(begin: float) -> str:
    if not begin:
        return ""
    return text(
        "It may be over: the log that is left starts at {start}.", start=clock(moment(begin))
    )


def title(incident: Incident) -> Message:
    """Return the rule's title with the incident's values."""
    return _filled(incident.rule.title, incident)


def _filled(template: str, incident: Incident) -> Message:
    """Fill the {name} places of a text; a value that no line contained becomes a plain word."""
    fields = {**incident.key, **incident.fields}
    values = {}
    for name in _PLACE.findall(template):
        value = _told(name, fields.get(name) or _UNNAMED.get(name, "?"))
        if name == "platform":
            from hermes_doctor.hermes.knowledge.releases import load_knowledge

            known = load_knowledge("platforms")["platforms"].get(value.lower())
            value = str(known["label"]) if known else value
        values[name] = shown(value, _REASON if name == "reason" else _LONG)
    return Message(template, values)


def _told(name: str, value: str) -> str:
    """Shorten the name of a job or task, because an unnamed one shows the start of its prompt."""
    if name not in _PROMPTED or _IDENTIFIER.fullmatch(value):
        return value
    from binascii import crc32

    return f"{value[:3].strip()}…{crc32(value.encode('utf-8', 'replace')) & 0xFFFF:04x}"


def shown(text: str, most: int = _LONG) -> str:
    """Redact and shorten a piece of a log line for display; a key is never cut before that."""
    return shorten(redact_log_text(text), most)


def _often(count: int, same: list[Incident], sessions: set[str]) -> str:
    if count == 1:
        return ""
    first = min(incident.first for incident in same)
    last = max(incident.last for incident in same)
    values = {
        "times": counted(count, "time"),
        "period": duration(last - first),
        "last": clock(moment(last)),
    }
    if len(sessions) > 1:
        return text(
            "{times} in {sessions} within {period}, last at {last}.",
            **values,
            sessions=counted(len(sessions), "session"),
        )
    if last - first < 1:
        return text("{times} at {last}.", times=values["times"], last=values["last"])
    return text("{times} within {period}, last at {last}.", **values)


def moment(at: float) -> datetime:
    """Convert a log time to a datetime, clamped because a line may contain an impossible one."""
    return datetime.fromtimestamp(min(max(at, _EARLIEST), _LATEST), UTC)


_ASKED = pattern(r" base_url=(\S+) model=(\S+)")


def with_route(incident: Incident, resolved: Resolved) -> tuple[Incident, Route | None]:
    """Return the incident about one route, and the route; None if no line names one that is set.

    One name, such as `custom`, may stand for several servers. If the main model failed, too, the
    incident is about that one, and has the values of its line.
    """
    routes = [(_asked_route(quote, resolved), quote) for quote in reversed(incident.quotes)]
    known = [(route, quote) for route, quote in routes if route is not None]
    if not known:
        return incident, None
    route, quote = next((one for one in known if one[0].path == resolved.main.path), known[0])
    if route.path == resolved.main.path:
        match = re.match(incident.rule.line.pattern, quote.entry.text)
        fields = match.groupdict(default="") if match else {}
        return incident._replace(fields={**incident.fields, **fields}), route
    name = route.operators_name or (route.provider or route.requested).value or ""
    told = ", ".join(filter(None, (name, route.model.value)))
    return incident._replace(about_fallback=told), route


def _asked_route(quote: Quote, resolved: Resolved) -> Route | None:
    """The route with the address and the model that a line names; the main one comes first."""
    asked = _ASKED.search(quote.entry.text)
    if asked is None:
        return None
    wanted = asked[1].rstrip("/"), asked[2]
    for route in (resolved.main, *resolved.fallback):
        address = ((route.base_url.value if route.base_url else None) or "").rstrip("/")
        if (address, route.model.value) == wanted:
            return route
    return None
