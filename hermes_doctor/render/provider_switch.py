"""Shows a switch from one provider to another, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hermes_doctor.backup.records.journal import Journal
from hermes_doctor.core import redaction
from hermes_doctor.core.terminal.lines import BLANK, Line, row
from hermes_doctor.hermes.settings.resolved import Route
from hermes_doctor.operations.provider_switch.plan import PLACEHOLDER_KEY, SwitchPlan
from hermes_doctor.render.config import redact_value
from hermes_doctor.render.diff import redacted_diff
from hermes_doctor.render.repair import diff_lines, run_document

SCHEMA = "hermes-doctor/switch/1"
_WIDTH = 9


def plan_lines(switch: SwitchPlan, *, tested: bool) -> Iterator[Line]:
    """The old and the new provider, and the steps."""
    yield from _route("from", switch.before)
    yield from _route("to", switch.after, switch.asked_for)
    if switch.fallback:
        yield from _route("fallback", switch.fallback)
    yield BLANK
    # The length of the placeholder is not that of a key that is not known yet.
    hidden = redaction.describe_hidden(PLACEHOLDER_KEY, "key")
    for step in switch.steps:
        yield row(("→ ", "faint"), step.sentence(), indent=2, hang=2)
        for line in diff_lines(step):
            added = line.text.lstrip().startswith("+")
            shown = [(text.replace(hidden, "(the key you type)"), how) for text, how in line.spans]
            yield line._replace(spans=tuple(shown)) if added else line
    for note in switch.notes:
        yield row(("! ", "warning"), redaction.redact_words(note), indent=2, hang=2)
    if switch.steps and tested:
        said = "send one test request; if it fails, roll back everything"
        yield row(("→ ", "faint"), said, indent=2, hang=2)
    yield BLANK


def _route(label: str, route: Route, asked_for: str = "") -> Iterator[Line]:
    told = f"{redact_value(route.requested.value)}  {redact_value(route.model.value)}"
    yield row(f"{label:<{_WIDTH}}", (told, "strong"), hang=_WIDTH)
    if route.trouble:
        yield row((redaction.redact_words(route.trouble.why), "error"), indent=_WIDTH)
        return
    values = (route.base_url, route.api_mode)
    parts = [redact_value(one.value) for one in values if one and one.value]
    parts += [f"key {_key(route, asked_for)}"] if route.key else []
    yield row((", ".join(parts), "faint"), indent=_WIDTH)


def _key(route: Route, asked_for: str) -> str:
    assert route.key is not None
    if route.key.state == "not needed":
        return "not needed"
    if asked_for and route.key.name == asked_for:
        return f"{asked_for} (not set yet)"
    place = (route.key.source.via or route.key.source).place
    if place == route.key.name:  # as the key that Hermes has built in
        return redaction.redact_words(route.key.name)
    return f"{redaction.redact_words(route.key.name)} in {place}"


def document(
    home: Path, switch: SwitchPlan, run: Journal | None, tested: str | None
) -> dict[str, Any]:
    """The switch as JSON data; keys only by their names."""
    return {
        "schema": SCHEMA,
        "home": str(home),
        "from": _of(switch.before),
        "to": _of(switch.after),
        "fallback": _of(switch.fallback) if switch.fallback else None,
        "steps": [
            {
                "what": step.sentence(),
                "diff": list(redacted_diff(*texts)) if (texts := step.texts()) else None,
            }
            for step in switch.steps
        ],
        "notes": [redaction.redact_words(note) for note in switch.notes],
        "applied": run is not None and run.state == "done",
        "test": tested,
        "run": run_document(run) if run else None,
    }


def _of(route: Route) -> dict[str, Any]:
    def maybe(answer: Any) -> str | None:
        return redact_value(answer.value) if answer else None

    return {
        "provider": maybe(route.requested),
        "base_url": maybe(route.base_url),
        "api_mode": maybe(route.api_mode),
        "model": maybe(route.model),
        "key": redaction.redact_words(route.key.name) if route.key else None,
        "trouble": redaction.redact_words(route.trouble.why) if route.trouble else None,
    }
