"""Shows the result of an update, as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hermes_doctor.core.message import count
from hermes_doctor.core.model import Severity
from hermes_doctor.core.terminal.lines import Line, row
from hermes_doctor.hermes.installation.details import InstallationDetails
from hermes_doctor.operations.updates.after_update import Outcome
from hermes_doctor.render.document import fields_of

_MARK = {Severity.CRITICAL: "error", Severity.ERROR: "error", Severity.WARNING: "warning"}


MOST_CRASHED = 3
"""How many crashed checks to name."""


def lines(outcome: Outcome, home: Path, options: Callable[[Path], str]) -> Iterator[Line]:
    """The verdict, what is broken, and what to type now."""
    yield row(
        ("✓ " if outcome.good else "✗ ", "good" if outcome.good else "error"), versions(outcome)
    )
    mark = ("  ", "good") if outcome.gateway_up else ("✗ ", "error")
    yield row(mark, outcome.gateway, hang=2)
    for text in outcome.missing:
        yield row(("✗ ", "error"), f"The new Hermes is incomplete: {text}.", hang=2)
    for text in outcome.lost:
        yield row(("✗ ", "error"), f"{text[:1].upper()}{text[1:]}.", hang=2)
    for text in outcome.elsewhere:
        yield row(("! ", "warning"), f"{text}; `rollback` does not cover it.", hang=2)
    for finding in outcome.broke:
        subject = f" ({finding.subject})" if finding.subject else ""
        yield row(
            ("! ", _MARK.get(finding.severity, "faint")),
            f"{finding.code}: {finding.title}{subject}",
            hang=2,
        )
    for text in outcome.crashed[:MOST_CRASHED]:
        yield row(("? ", "warning"), f"The check {text}", hang=2)
    if (more := len(outcome.crashed) - MOST_CRASHED) > 0:
        yield row(("? ", "warning"), f"{count(more, 'more check')} crashed.", hang=2)
    for number, where in enumerate(outcome.broken):
        text = " " * 14 if number else "  Repair:     "
        yield row((text, "faint"), f"hermes-doctor fix{options(where.path)}")
    if not outcome.good and outcome.update.backup:
        yield row(("  Roll back:  ", "faint"), f"hermes-doctor rollback{options(home)}")


def versions(outcome: Outcome) -> str:
    """The old and the new version, and the verdict."""
    before, after = outcome.update.before, outcome.update.after
    text = _versions(before, after)
    if outcome.good:
        return f"{text} Nothing new is broken."
    if outcome.report.why_blind:
        return f"{text} {outcome.report.why_blind}"
    if outcome.as_before:
        return f"{text} The gateway does not start, as before the update."
    return f"{text} The update broke something."


def _versions(before: InstallationDetails | None, after: InstallationDetails | None) -> str:
    if before is None and after is None:
        return "Could not find out which Hermes is installed."
    if before is None or after is None:
        name = before.version if before else "of unknown version"
        if after is None:
            return f"Hermes {name} is no longer installed."
        return f"Hermes {name} was updated to {after.version}."
    if before.revision == after.revision and before.version == after.version:
        return f"Hermes is still {after.version}."
    commits = before.version == after.version and before.revision and after.revision
    old, new = (
        (
            f"{installation_details.version} ({(installation_details.revision or '')[:12]})"
            if commits
            else installation_details.version
        )
        for installation_details in (before, after)
    )
    return f"Hermes {old} was updated to {new}."


def document(outcome: Outcome) -> dict[str, Any]:
    """The result as JSON data."""
    update = outcome.update
    return {
        "schema": "hermes-doctor/update-report/1",
        "update": update.id,
        "backup": update.backup,
        "before": update.before.version if update.before else None,
        "after": update.after.version if update.after else None,
        "exit_code": update.exit_code,
        "good": outcome.good,
        "gateway": {"up": outcome.gateway_up, "what": outcome.gateway},
        **fields_of(outcome, "missing lost elsewhere crashed"),
        "broke": [fields_of(finding, "code severity title subject") for finding in outcome.broke],
    }
