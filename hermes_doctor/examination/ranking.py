"""Order the problems of a report: which silence the bot, which come first, what caused them."""

from __future__ import annotations

from hermes_doctor.model import DOWN, PLATFORM, SILENCING, Finding, Report, Severity


def silences(report: Report, finding: Finding) -> bool:
    """Whether people get no answer because of this finding."""
    effect = report.effects.get(finding.code)
    broken = effect is not None and effect.part in (*SILENCING, PLATFORM)
    return broken and finding.severity.rank <= Severity.ERROR.rank


def order(report: Report, finding: Finding) -> tuple[int, bool, int, str, str]:
    """Sort key: severe problems first, then what silences the bot.

    That no gateway is running comes last: a start does not help while something else still
    silences the bot.
    """
    effect = report.effects.get(finding.code)
    part = effect.part if effect else ""
    weight = 0 if part in SILENCING else 1 if part == PLATFORM else 2
    rank = max(finding.severity.rank, Severity.ERROR.rank)
    return rank, part == DOWN, weight, finding.code, finding.subject


def problems(report: Report) -> list[list[Finding]]:
    """The problems that no other problem caused, the first to look at in front.

    Those that differ only in their subject are together.
    """
    bad = [one for one in report.findings if one.severity is not Severity.INFO]
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for one in bad:
        if cause(report, one) is None:
            title = one.title.replace(one.subject, "") if one.subject else one.title
            key = one.severity, one.code, title, one.detail, one.fix
            groups.setdefault(key, []).append(one)
    return sorted(groups.values(), key=lambda group: min(order(report, one) for one in group))


def cause(report: Report, finding: Finding) -> Finding | None:
    """The problem that caused this one, unless it is missing or the chain is circular."""
    bad = [one for one in report.findings if one.severity is not Severity.INFO]
    found = next((f for f in bad if f.code == finding.caused_by and f != finding), None)
    seen = {finding.code}
    step: Finding | None = found
    while step is not None:
        if step.code in seen:
            return None
        seen.add(step.code)
        code = step.caused_by
        step = next((f for f in bad if f.code == code), None)
    return found
