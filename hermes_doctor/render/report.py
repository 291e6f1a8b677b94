"""Show a report: is the bot working, why not, and what to type now.

The screen fits into 24 rows of 80 columns if there are at most seven problems. The more problems
there are, the less is shown of each; `check -v` shows everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import chain

from hermes_doctor import __version__
from hermes_doctor.core.message import ago, clock, count, listed, ordinal, ranges, shorten, text
from hermes_doctor.core.model import (
    DOWN,
    CheckResult,
    Finding,
    Mark,
    Report,
    Severity,
    Status,
    Verdict,
    VerdictKind,
    effect_of,
)
from hermes_doctor.core.terminal.lines import BLANK, Line, Span, cell_width, row, rows_of, tilde
from hermes_doctor.diagnosis.examination import ranking

ROWS, COLUMNS = 24, 80  # the screen that a report is made for
_LEVELS = ("titles", "brief", "step", "clipped", "one", "full")
MOST_EVIDENCE = 2
MOST_CONSEQUENCES = 4
MOST_SUBJECTS = 8
MARKS = {
    Mark.GOOD: ("✓", "good"),
    Mark.BAD: ("✗", "error"),
    Mark.LIMITED: ("!", "warning"),
    Mark.NONE: ("·", "faint"),
    Mark.UNKNOWN: ("?", "faint"),
}
_KINDS = {
    VerdictKind.WORKING: Mark.GOOD,
    VerdictKind.NOT_TRIED: Mark.GOOD,
    VerdictKind.LIMITED: Mark.LIMITED,
    VerdictKind.NOT_WORKING: Mark.BAD,
    VerdictKind.STOPPED: Mark.NONE,
    VerdictKind.NOT_SET_UP: Mark.LIMITED,
    VerdictKind.UNKNOWN: Mark.UNKNOWN,
}
FEW = 3
"""Up to so many problems, each is shown with its evidence if there is room for it."""
NEW = timedelta(days=1)
"""Mutes younger than this are shown at the top."""
MOST_NEW = 3
SHORT = 2 * COLUMNS - 10  # what is left of two rows
MOST_CODES = 8
MANY_SKIPPED = 10
"""So many checks that were skipped for the same reason are worth a line."""


def lines(report: Report, *, verbose: bool = False) -> Iterator[Line]:
    """All lines of the report."""
    judged = report.verdict or Verdict(VerdictKind.UNKNOWN, "")
    top, tree, bottom = _frame(report, judged, verbose)
    if verbose:
        levels = ["all"] * len(tree.groups)
    else:
        levels = _fitting(report, tree, _rows([*top, *bottom]))
    problems = [_problem(report, tree, place, level) for place, level in enumerate(levels)]
    made = [*top, *chain.from_iterable(problems), *bottom]
    yield from made
    if verbose or _rows(made) >= ROWS:
        yield BLANK
        yield _headline(judged)


def _frame(
    report: Report, judged: Verdict, verbose: bool
) -> tuple[list[Line], ranking.Problems, list[Line]]:
    """What is above the problems, the problems, and what is below them."""
    top = [
        row(
            ("hermes-doctor", "strong"),
            f" {__version__} · {tilde(report.home)} · ",
            f"Hermes {report.hermes_version}" if report.hermes_version else "no Hermes found",
        ),
        BLANK,
        _headline(judged),
        *new_mutes(report),
        BLANK,
    ]
    for state in report.states:
        spans: list[Span] = []
        for part in state.parts:
            mark, style = MARKS[part.mark]
            spans += [("   " if spans else "", ""), (f"{mark} ", style), (part.text, "")]
        top.append(row(f"{state.name:<10} ", *spans, indent=2, hang=13))
    if report.states:
        top.append(BLANK)
    tree = ranking.Problems(report)
    rest = list(rest_of(report, verbose, bool(tree.groups)))
    bottom = [BLANK, *rest] if tree.groups and rest else rest
    return top, tree, [*bottom, *_next(report, judged, tree)]


def _fitting(report: Report, tree: ranking.Problems, frame: int) -> list[str]:
    """How much to show of each problem, so that the screen is not longer than the terminal.

    The first problem gets the most. Where there are many, only those that silence the bot get a
    second line.
    """
    number = len(tree.groups)
    levels = ["titles"] * number
    rows = [_rows(list(_problem(report, tree, place, "titles"))) for place in range(number)]
    used = frame + sum(rows)
    silencing = [ranking.silences(report, group[0]) for group in tree.groups]
    wanted: list[tuple[int, str]]
    if number <= FEW:
        wanted = [(0, "clipped"), (0, "one")] if number else []
        for level in ("step", "clipped", "one", "full"):
            wanted += [(place, level) for place in range(number)]
    else:
        wanted = [(place, "brief") for place, silent in enumerate(silencing) if silent]
        wanted += [(0, "clipped"), (0, "one")]
    for place, level in wanted:
        if _LEVELS.index(level) < _LEVELS.index(levels[place]):
            continue
        taken = _rows(list(_problem(report, tree, place, level)))
        if used - rows[place] + taken < ROWS:
            levels[place] = level
            used += taken - rows[place]
            rows[place] = taken
    return levels


def _rows(made: Sequence[Line]) -> int:
    return sum(rows_of(line, COLUMNS) for line in made)


def _headline(judged: Verdict) -> Line:
    mark, style = MARKS[_KINDS[judged.kind]]
    return row((f"{mark} ", style), (judged.headline, "strong"), hang=2)


def _problem(report: Report, tree: ranking.Problems, place: int, level: str) -> Iterator[Line]:
    """One problem, with more or less of what is known of it:

    titles   the title, and the codes of its consequences
    brief    also the detail
    step     also what to do
    clipped  one short piece of evidence, the detail, the consequences, and what to do
    one      one piece of evidence, not shortened
    full     two pieces of evidence
    all      everything (`check -v`)
    """
    group = tree.groups[place]
    first = group[0]
    sign, style = MARKS[Mark.BAD if first.severity.rank <= Severity.ERROR.rank else Mark.LIMITED]
    more = f" (and {len(group) - 1} more)" if len(group) > 1 else ""
    beside, below = recurrence(report, first, more, COLUMNS)
    yield row(
        f"{place + 1:<2}",
        (f"{sign} ", style),
        (first.title, "strong"),
        more,
        (beside, "faint"),
        hang=4,
        right=(first.code, "faint"),
    )
    yield from [] if level == "titles" or not below else [row((below, "faint"), indent=4)]
    behind = tree.consequences(place)
    whole = level in ("clipped", "one", "full", "all")
    if behind and not whole:
        codes = listed(sorted({finding.code for finding in behind}), MOST_CONSEQUENCES)
        yield row((f"└ leads to {codes}", "faint"), indent=4, hang=2)
    if level == "titles":
        return
    said = todo(report, [first, *behind])
    if level == "step":
        yield from [row(said, indent=4)] if said else []
        return
    if len(group) > 1 and whole:
        yield row(listed([one.subject for one in group], MOST_SUBJECTS), indent=4)
    elif whole:
        most = {"clipped": 1, "one": 1, "full": MOST_EVIDENCE}.get(level, len(first.evidence))
        yield from evidence_lines(first, most, short=level == "clipped")
    if first.detail:
        yield row(first.detail, indent=4)
    if first.since and level == "all":
        yield row((f"since {clock(first.since)}", "faint"), indent=4)
    if not whole:
        return
    consequences = behind if level == "all" else behind[:MOST_CONSEQUENCES]
    for finding in consequences:
        when = f"{clock(finding.since)} " if finding.since else ""
        yield row(f"└ {when}{finding.title}", indent=4, hang=2, right=(finding.code, "faint"))
    if len(behind) > len(consequences):
        yield row((f"└ and {len(behind) - len(consequences)} more", "faint"), indent=4)
    if said:
        yield row(said, indent=4)


def _next(report: Report, judged: Verdict, tree: ranking.Problems) -> Iterator[Line]:
    """The commands to type now."""
    problems = tree.groups
    commands: list[tuple[str, str]] = []
    if judged.kind is VerdictKind.NOT_SET_UP:
        commands.append(("hermes setup", "choose a model and a platform"))
    broken = any(problem[0].severity.rank <= Severity.ERROR.rank for problem in problems)
    if judged.kind is VerdictKind.STOPPED and not broken:
        start = ("hermes gateway run", "start the bot in this terminal")
        for finding in filter(report.offer, report.findings):
            if (effect := effect_of(finding, report.effects)) and effect.part == DOWN:
                command = f"hermes-doctor fix {finding.code}{report.options}"
                start = (command, "show how to start it; changes nothing")
                break
        commands.append(start)
    fixable = tree.repairable()
    if fixable:
        many = "the repair" if len(fixable) == 1 else "repairs"
        which = many if len(problems) == 1 else f"{many} of {ranges(fixable)}"
        commands.append((f"hermes-doctor fix{report.options}", f"show {which}; changes nothing"))
    if problems:
        code = judged.primary.code if judged.primary else problems[0][0].code
        explain = f"hermes-doctor explain {code}{report.page_options}"
        commands.append((explain, "more about this problem"))
    suggested = [
        finding.data["suggests"] for finding in report.findings if "suggests" in finding.data
    ]
    commands += [(f"{command}{report.options}", purpose) for command, purpose in suggested]
    if commands:
        yield BLANK
    yield from _commands(commands)


def _commands(commands: Sequence[tuple[str, str]]) -> Iterator[Line]:
    """Commands with what each is for, in two columns where they fit."""
    widths = [len(command) for command, _ in commands]
    fits = all(6 + max(widths) + 2 + len(purpose) <= COLUMNS for _, purpose in commands)
    for number, (command, purpose) in enumerate(commands):
        lead = "      " if number else "Next: "
        shown = f"{command:<{max(widths)}}" if fits else command
        yield row(lead, (shown, "command"), f"  {purpose}", hang=8)


_AROUND = 9
"""Cells for the number and mark before a title, the separator, and the space before the code."""


def recurrence(report: Report, finding: Finding, more: str, columns: int) -> tuple[str, str]:
    """What to write behind the title, and what to write below it; at most one is not empty."""
    times = (report.times or {}).get(finding.key, 1)
    if times < 2:
        return "", ""
    said = f"{ordinal(times)} time in 7 days"
    taken = cell_width(f"{finding.title}{more}{said}{finding.code}") + _AROUND
    return (f" · {said}", "") if taken <= columns else ("", said)


def evidence_lines(finding: Finding, most: int, *, short: bool = False) -> Iterator[Line]:
    """The first pieces of evidence of a finding."""
    shown = finding.evidence[:most]
    left = len(finding.evidence) - len(shown)
    for number, evidence in enumerate(shown, 1):
        more = f"   ({left} more)" if left and number == len(shown) else ""
        room = max(60, SHORT - len(evidence.where + more))
        said = shorten(evidence.what, room) if short else evidence.what
        yield row((f"{evidence.where}  ", "faint"), said, (more, "faint"), indent=4, hang=2)


def todo(report: Report, findings: Sequence[Finding]) -> str:
    """What the operator does: the finding's own step, or why its fix cannot be applied.

    If a problem has neither and no fix, the step of its first consequence is shown.
    """
    for finding in findings:
        if said := " ".join(filter(None, (finding.next, report.refusal(finding)))):
            return said
        if report.offer(finding):
            return ""
    return ""


def rest_of(report: Report, every: bool, problems: bool) -> Iterator[Line]:
    """What is not a problem: passed checks, checks without an answer, and notes."""
    notes = [
        finding
        for finding in report.findings
        if finding.severity is Severity.INFO and not finding.muted
    ]
    yield from _muted(report, every)
    if every:
        yield from _notes(report, notes)
        groups = Counter(check.group for check in report.checks if check.status is Status.OK)
        if groups:
            parts = ", ".join(f"{group} {number}" for group, number in groups.items())
            yield row(("✓ ", "good"), f"Passed: {parts}. It took {report.seconds:.1f} s.", hang=2)
        deeper = (" All: ", (f"hermes-doctor check --deep{report.options}", "command"))
        for check in report.checks:
            if check.status is Status.OK and check.reason:
                hint = () if "--deep" in report.options.split() else deeper
                yield row(("· ", "faint"), f"Only in part: {check.reason}.", *hint, hang=2)
        yield from open_questions(report)
        for reason, skipped in _skipped(report).items():
            names = f"Skipped {', '.join(skipped)}: {reason}"
            yield row(("· ", "faint"), (names, "faint"), hang=2)
        return
    if "--deep" in report.options.split():  # its notes are shown now: to repeat it takes long
        yield from _notes(report, notes)
        notes = []
    passed = report.count_checks(Status.OK)
    open_ = [check for check in report.checks if check.status in (Status.UNKNOWN, Status.CRASHED)]
    more = f"hermes-doctor check -v{report.options}"
    if open_:
        rest = f" (and {len(open_) - 1} more)" if len(open_) > 1 else ""
        yield row(("? ", "faint"), _open_question(open_[0]) + rest, hang=2)
    for reason, skipped in _skipped(report).items():
        if len(skipped) >= MANY_SKIPPED:
            yield row(("? ", "faint"), f"{count(len(skipped), 'check')} skipped: {reason}", hang=2)
    said = "" if problems else f"{count(passed, 'check')} passed in {report.seconds:.1f} s. "
    if notes:
        yield row((f"{said}{count(len(notes), 'note')}: ", "faint"), (more, "command"))
    elif said:
        yield row((said, "faint"))


def new_mutes(report: Report) -> Iterator[Line]:
    """The findings that were muted in the last day.

    A program that runs as the operator can mute what it likes, so he should notice.
    """
    since = [(one, report.muted_since.get(one.key)) for one in report.findings if one.muted]
    new = [(one, at) for one, at in since if at and report.started_at - at < NEW]
    for finding, at in new[:MOST_NEW]:
        message = text("muted since {time}: ", time=ago(at, report.started_at))
        code = (finding.code, "faint")
        yield row(("! ", "warning"), (message, "faint"), finding.title, hang=2, right=code)
    if len(new) > MOST_NEW:
        rest = (f"and {len(new) - MOST_NEW} more: ", "faint")
        yield row(("! ", "warning"), rest, ("hermes-doctor mutes", "command"), hang=2)


def _muted(report: Report, every: bool) -> Iterator[Line]:
    """The muted findings, all in one line, or with their titles; and what is switched off."""
    if report.off:
        off = listed(report.off, MOST_CODES)
        yield row(("· ", "faint"), (f"Found, but off in config.toml: {off}.", "faint"), hang=2)
    muted = [one for one in report.findings if one.muted]
    if not muted:
        return
    if every:
        yield row(("Muted", "strong"))
        for finding in muted:
            code = (finding.code, "faint")
            yield row(("· ", "faint"), finding.title, indent=2, hang=2, right=code)
        yield BLANK
        return
    codes = listed(sorted({one.code for one in muted}), MOST_CODES)
    more = ("hermes-doctor mutes", "command")
    yield row(("· ", "faint"), (f"Muted: {codes}. See: ", "faint"), more, hang=2)


def _notes(report: Report, notes: Sequence[Finding]) -> Iterator[Line]:
    if not notes:
        return
    yield row(("Notes", "strong"))
    for note in notes:
        yield row(("· ", "faint"), note.title, indent=2, hang=2, right=(note.code, "faint"))
        yield from evidence_lines(note, len(note.evidence))
        if note.detail:
            yield row(note.detail, indent=4)
        if said := todo(report, [note]):
            yield row(said, indent=4)
    yield BLANK


def _skipped(report: Report) -> dict[str, list[str]]:
    """The skipped checks by the reason for it."""
    found: dict[str, list[str]] = {}
    for check in report.checks:
        if check.status is Status.SKIPPED:
            found.setdefault(check.reason or "no reason given", []).append(check.id)
    return found


def open_questions(report: Report) -> Iterator[Line]:
    """The checks without an answer, and why."""
    for check in report.checks:
        if check.status in (Status.UNKNOWN, Status.CRASHED):
            yield row(("? ", "warning"), _open_question(check), hang=2)


def _open_question(check: CheckResult) -> str:
    reason = check.reason or "no reason given"
    if check.status is Status.CRASHED:
        return f"The check {check.id} crashed: {reason}"
    return f"Could not check {check.id}: {reason}"
