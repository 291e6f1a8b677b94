"""Find out which configured model an incident is about: the main one or a fallback."""

from __future__ import annotations

import re

from hermes_doctor.core.lazy import pattern
from hermes_doctor.diagnosis.plugins.log_rules.incident import Incident, Quote
from hermes_doctor.hermes.settings.resolved import Resolved, Route

_ASKED = pattern(r" base_url=(\S+) model=(\S+)")


def with_route(incident: Incident, resolved: Resolved) -> tuple[Incident, Route | None]:
    """Return the incident about one route, and the route; None if no line names one that is set.

    One name, such as `custom`, may stand for several servers. If the main model failed, too, the
    incident is about that one, and has the values of its line.
    """
    routes = [(_route(quote, resolved), quote) for quote in reversed(incident.quotes)]
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


def _route(quote: Quote, resolved: Resolved) -> Route | None:
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
