"""Shows a report: is the bot working, since when not, why, and what to type now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby

from hermes_doctor import __version__
from hermes_doctor.model import CheckResult, Finding, Report, RungState, Safety, Severity, Status
from hermes_doctor.terminal.lines import BLANK, Line, Span, row, tilde

MOST_SUBJECTS = 8
MOST_EVIDENCE = 3
_ASKS = {Safety.SAFE: "", Safety.CONFIRM: "   (asks first)", Safety.MANUAL: "   (by hand)"}


def lines(report: Report) -> Iterator[Line]:
    """All lines of the report."""
    yield row(
        ("hermes-doctor", "strong"),
        f" {__version__} · {tilde(report.home)} · ",
        f"Hermes {report.hermes_version or 'of unknown version'} · {_gateway(report)}",
    )
    yield from _ladder(report)
    yield BLANK
    yield _verdict(report)
    groups = _groups(_roots(report.findings))
    for group in sorted(groups, key=lambda one: _worst(report, one)):
        yield BLANK
        yield from _block(report, group, depth=0)
    yield BLANK
    yield from _rest(report)
    yield from _next(report)


def _gateway(report: Report) -> str:
    if report.gateways is None:
        return "gateway unknown"
    if not report.gateways:
        if (
            report.ladder and report.ladder[0].hold is RungState.OK
        ):  # another home's gateway serves it
            return report.ladder[0].what
        since = report.ladder[0].since if report.ladder else None
        return f"gateway not running{f' since {_time(since)}' if since else ''}"
    pids = ", ".join(str(gateway.pid) for gateway in report.gateways)
    return f"gateway runs since {_time(report.gateways[0].started_at)} (process {pids})"


_MARKS = {
    RungState.OK: ("✓", "good"),
    RungState.FAILED: ("✗", "error"),
    RungState.UNKNOWN: ("?", "faint"),
}


def _ladder(report: Report) -> Iterator[Line]:
    """The liveness ladder; nothing for a home without a gateway."""
    if not report.ladder or report.ladder[0].hold is RungState.FAILED:
        return
    parts: list[Span] = []
    for rung in report.ladder:
        mark, style = _MARKS[rung.hold]
        parts += [(f" → {rung.name} " if parts else f"{rung.name} ", ""), (mark, style)]
    yield row(*parts)
    top = report.highest_rung
    if top:
        since = f" since {_time(top.since)}" if top.since else ""
        place = [rung.name for rung in report.ladder].index(top.name) + 1
        broken = next((r for r in report.ladder[place:] if r.hold is RungState.FAILED), None)
        more = f"; {broken.name}: {broken.what}" if broken else ""
        said = f"Stands on rung {place} of {len(report.ladder)}, {top.name}{since}: {top.what}"
        yield row(f"{said}{more}.", hang=2)


def _verdict(report: Report) -> Line:
    bad = {s: n for s, n in report.counts.items() if n and s is not Severity.INFO}
    if bad:
        mark = "warning" if set(bad) == {Severity.WARNING} else "error"
        total = sum(bad.values())
        parts = ", ".join(f"{n} {_plural(severity, n)}" for severity, n in bad.items())
        noun = "problem" if total == 1 else "problems"
        crashed = sum(check.status is Status.CRASHED for check in report.checks)
        also = f" {crashed} {'check' if crashed == 1 else 'checks'} crashed." if crashed else ""
        return row(("✗ ", mark), (f"{total} {noun}: {parts}.{also}", "strong"))
    unsure = [c for c in report.checks if c.status in (Status.UNKNOWN, Status.CRASHED)]
    if unsure:
        return row(("? ", "warning"), (_unsure(unsure), "strong"))
    told = report.counts[Severity.INFO]
    also = f" {told} {'thing' if told == 1 else 'things'} to know." if told else ""
    return row(("✓ ", "good"), (f"Nothing is wrong.{also}", "strong"))


def _unsure(checks: Sequence[CheckResult]) -> str:
    """The verdict if checks had no answer; a crashed check may have missed anything."""
    crashed = sum(check.status is Status.CRASHED for check in checks)
    if crashed:
        word = "check" if crashed == 1 else "checks"
        return f"It cannot be told whether anything is wrong: {crashed} {word} crashed."
    word = "question" if len(checks) == 1 else "questions"
    return f"Nothing wrong was found, but {len(checks)} {word} could not be answered."


def _plural(severity: Severity, count: int) -> str:
    return severity.value if count == 1 or severity is Severity.CRITICAL else f"{severity.value}s"


def _roots(findings: Sequence[Finding]) -> list[Finding]:
    """The findings that no other finding caused."""
    return [finding for finding in findings if _cause(finding, findings) is None]


def _cause(finding: Finding, findings: Sequence[Finding]) -> Finding | None:
    """The finding that caused this one, unless it is missing or the chain is circular."""
    cause = next((f for f in findings if f.code == finding.caused_by and f != finding), None)
    seen = {finding.code}
    step: Finding | None = cause
    while step is not None:
        if step.code in seen:
            return None
        seen.add(step.code)
        step = next((f for f in findings if f.code == step.caused_by), None) if step else None
    return cause


def _groups(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Group the findings that differ only in their subject."""

    def likeness(finding: Finding) -> tuple[object, ...]:
        same = finding.title.replace(finding.subject, "") if finding.subject else finding.title
        return finding.severity.rank, finding.code, same, finding.detail, finding.fix or ""

    return [list(group) for _, group in groupby(sorted(findings, key=likeness), key=likeness)]


def _worst(report: Report, group: Sequence[Finding]) -> int:
    """The worst severity among a cause and its consequences."""
    behind = [f for f in report.findings if _cause(f, report.findings) in group]
    ranks = [finding.severity.rank for finding in group]
    return min([*ranks, *(_worst(report, [finding]) for finding in behind)])


def _block(report: Report, group: Sequence[Finding], depth: int) -> Iterator[Line]:
    first = group[0]
    indent = depth * 3
    severity = first.severity.value
    lead = "└─ " if depth else ""
    yield row(
        lead,
        (f"{severity}", severity),
        "  ",
        (first.code, "strong"),
        f"  {first.title}",
        indent=indent,
        hang=2,
    )
    inner = indent + 2 + len(lead)
    if len(group) > 1:
        names = [finding.subject for finding in group]
        more = f" and {len(names) - MOST_SUBJECTS} more" if len(names) > MOST_SUBJECTS else ""
        yield row(", ".join(names[:MOST_SUBJECTS]) + more, indent=inner)
    else:
        for evidence in first.evidence[:MOST_EVIDENCE]:
            yield row((f"{evidence.where}: ", "faint"), evidence.what, indent=inner, hang=2)
    if first.detail:
        yield row(first.detail, indent=inner)
    if first.since:
        yield row((f"since {_time(first.since)}", "faint"), indent=inner)
    offer = report.offer(first)
    if offer:
        yield row("fix: ", (offer.command, "command"), _ASKS[offer.safety], indent=inner, hang=5)
    else:
        more = f"hermes-doctor explain {first.code}{report.page_options}"
        yield row("more: ", (more, "command"), indent=inner)
    consequences = [f for f in report.findings if _cause(f, report.findings) in group]
    for sub in sorted(_groups(consequences), key=lambda one: _worst(report, one)):
        yield from _block(report, sub, depth + 1)


def _rest(report: Report) -> Iterator[Line]:
    """One line for all passed checks, and one for each check without an answer."""
    well: dict[str, int] = {}
    skipped = 0
    for check in report.checks:
        if check.status is Status.OK:
            well[check.group] = well.get(check.group, 0) + 1
        skipped += check.status is Status.SKIPPED
    if well:
        parts = ", ".join(f"{group} {count}" for group, count in well.items())
        yield row(("✓ ", "good"), f"In order: {parts}.")
    for check in report.checks:
        if check.status is Status.OK and check.reason:
            deep = f"hermes-doctor check --deep{report.options}"
            yield row(
                ("– ", "faint"),
                (f"In part: {check.reason}. ", "faint"),
                "All: ",
                (deep, "command"),
                hang=2,
            )
    if skipped:
        yield row(("– ", "faint"), (f"Does not apply here: {skipped}.", "faint"))
    yield from open_questions(report)


def open_questions(report: Report) -> Iterator[Line]:
    """The checks without an answer, and why."""
    for check in report.checks:
        if check.status in (Status.UNKNOWN, Status.CRASHED):
            yield _open_question(check)


def _open_question(check: CheckResult) -> Line:
    word = "crashed" if check.status is Status.CRASHED else "could not look"
    return row(("? ", "warning"), f"{check.id} {word}: {check.reason or 'no reason given'}", hang=2)


def _next(report: Report) -> Iterator[Line]:
    """The command to type now."""
    offers = [offer for finding in report.findings if (offer := report.offer(finding))]
    if not offers:
        return
    yield BLANK
    yield row(
        "Type now: ",
        (f"hermes-doctor fix{report.options}", "command"),
        "   shows what would be done, changes nothing",
        hang=2,
    )


def _time(moment: datetime) -> str:
    try:
        return f"{moment.astimezone():%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):
        return f"{moment:%Y-%m-%d %H:%M}"
