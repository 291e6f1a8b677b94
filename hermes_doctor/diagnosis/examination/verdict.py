"""Decide from a report whether the bot answers people, and what to look at first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from hermes_doctor.core.message import Message, ago, clock, count, duration, listed, sentences, text
from hermes_doctor.core.model import (
    ANSWERS_OUT,
    DOWN,
    NO_PLATFORM,
    SILENCING,
    UNSEEN,
    Finding,
    Mark,
    Part,
    Report,
    Rung,
    RungState,
    Severity,
    Status,
    Verdict,
    VerdictKind,
    part_of,
)
from hermes_doctor.diagnosis.examination.liveness import ANSWERED
from hermes_doctor.diagnosis.examination.ranking import Problems, fails_later, order, silences

MESSAGES, ANSWERS, PLATFORMS = "messages in", ANSWERS_OUT, "platforms"
"""Names of rungs."""


def judge(report: Report) -> Verdict:
    """Whether the bot of this report answers people, and if not, why not."""
    bad = [finding for finding in report.findings if finding.is_problem]
    primary = first_cause(report)
    silent = _silencing(report, bad)
    if silent is not None:
        return Verdict(VerdictKind.NOT_WORKING, _not_working(report, silent, bad), primary)
    if known := _known_silence(report):
        return Verdict(VerdictKind.NOT_WORKING, known, primary, muted=True)
    if not report.complete:
        return _partial(report, bad, primary)
    if unseen := _unseen(report):
        return Verdict(VerdictKind.UNKNOWN, unseen, primary)
    if not_set_up := _not_set_up(report, bad):
        return Verdict(VerdictKind.NOT_SET_UP, not_set_up, primary)
    process = report.ladder[0] if report.ladder else None
    if process is None or process.hold is RungState.UNKNOWN:
        why = process.what if process else "the gateway could not be examined"
        return Verdict(VerdictKind.UNKNOWN, _undetermined(why), primary)
    if process.hold is RungState.FAILED:
        down = next((one for one in report.findings if _is_down(report, one)), None)
        muted = down is not None and down.muted
        return Verdict(VerdictKind.STOPPED, _stopped(report, process, bad), primary, muted)
    if unsure := _unsure(report):
        return Verdict(VerdictKind.UNKNOWN, unsure, primary)
    if waits := _waits(report):
        return Verdict(VerdictKind.LIMITED, waits, primary)
    parts = _platform_parts(report)
    if parts and all(part.mark is Mark.BAD for part in parts):
        names = listed([part.text for part in parts])
        headline = text("Your bot is not connected: {platforms}.", platforms=names)
        return Verdict(VerdictKind.NOT_WORKING, headline, primary)
    if bad:
        return Verdict(VerdictKind.LIMITED, _limited(report, bad), primary)
    if _holds(report, ANSWERS):
        return Verdict(VerdictKind.WORKING, _working(report))
    return Verdict(VerdictKind.NOT_TRIED, _not_tried(report))


def first_cause(report: Report) -> Finding | None:
    """The problem to look at first: the worst of those that no other problem caused."""
    problems = Problems(report).groups
    return min(problems[0], key=lambda one: order(report, one)) if problems else None


def _silencing(report: Report, bad: Sequence[Finding]) -> list[str] | None:
    """The platforms that get no answer: [] for the whole bot, None if there are none."""
    silencing = [finding for finding in bad if silences(report, finding)]
    if not silencing:
        return None
    if any(part_of(one, report.effects) in SILENCING for one in silencing):
        return []
    parts = _platform_parts(report)
    silent = [part for part in parts if part.mark is Mark.BAD]
    if parts and len(silent) == len(parts):
        return [one.text.split(":")[0] for one in silent]
    return None


def _known_silence(report: Report) -> Message | None:
    """Nobody gets an answer because of a problem that the operator muted or turned down."""
    muted = [finding for finding in report.findings if finding.muted]
    if _silencing(report, muted) is not None:
        first = min(muted, key=lambda one: order(report, one))
        return text("Your bot is not working, and the reason is muted: {cause}.", cause=first.title)
    if _silencing(report, [*muted, *report.turned_down]) is None:
        return None
    first = min(report.turned_down, key=lambda one: order(report, one))
    return text(
        "Your bot is not working, and config.toml lowers the severity of the reason: {cause}.",
        cause=first.title,
    )


def _platform_parts(report: Report) -> tuple[Part, ...]:
    return tuple(part for part in report.parts("platforms") if part.text != NO_PLATFORM)


def _not_working(report: Report, platforms: list[str], bad: Sequence[Finding]) -> Message:
    tree = Problems(report)
    primary = first_cause(report)
    causes = [
        place
        for place, group in enumerate(tree.groups)
        if any(silences(report, finding) for finding in (*group, *tree.consequences(place)))
    ]
    if primary and causes != [0]:
        return _several(report, tree, primary)
    known = [finding.since for finding in bad if finding.since and silences(report, finding)]
    known += [one.since for one in report.findings if one.since and _is_down(report, one)]
    since = min(known, default=None)
    if platforms and since:
        return text(
            "Nobody on {platforms} has had an answer since {since}.",
            platforms=listed(platforms),
            since=_moment(since),
        )
    if platforms:
        return text("Nobody on {platforms} gets an answer.", platforms=listed(platforms))
    cause = primary.title if primary else "see below"
    if since:
        return text(
            "Your bot has not been working since {since}: {cause}.",
            since=_moment(since),
            cause=cause,
        )
    return text("Your bot is not working: {cause}.", cause=cause)


def _several(report: Report, tree: Problems, primary: Finding) -> Message:
    """More than one problem silences the bot, or another one must be solved first."""
    group = (*tree.groups[0], *tree.consequences(0))
    template = "Your bot is not working: {cause} (1 of {number})."
    if not any(silences(report, finding) for finding in group):  # the gateway does not run
        template = "Your bot is not running. Repair this first: {cause} (1 of {number})."
    return text(template, cause=primary.title, number=len(tree.groups))


def _first_error(report: Report) -> Message | None:
    """The problem to look at first, and how many there are; None if there are only warnings."""
    problems, first = Problems(report).groups, first_cause(report)
    if first is None or all(problem[0].severity.rank > Severity.ERROR.rank for problem in problems):
        return None
    if len(problems) == 1:
        return text("{cause}", cause=first.title)
    return text("{cause} (1 of {number})", cause=first.title, number=len(problems))


def _moment(since: datetime) -> str:
    seconds = (datetime.now(UTC) - since).total_seconds()
    return f"{clock(since)} ({duration(seconds)})"


def _partial(report: Report, bad: Sequence[Finding], primary: Finding | None) -> Verdict:
    ran = count(len(report.checks), "check")
    if bad:
        headline = text(
            "Only {ran} ran and found {problems}.", ran=ran, problems=count(len(bad), "problem")
        )
        return Verdict(VerdictKind.LIMITED, headline, primary)
    unsure = [check for check in report.checks if check.status in (Status.UNKNOWN, Status.CRASHED)]
    if unsure:
        return Verdict(
            VerdictKind.UNKNOWN,
            text(
                "Only {ran} ran; {open} could not be completed.",
                ran=ran,
                open=count(len(unsure), "check"),
            ),
        )
    if muted := sum(finding.muted for finding in report.findings):
        headline = text(
            "Only {ran} ran and found {problems}.", ran=ran, problems=count(muted, "muted problem")
        )
        return Verdict(VerdictKind.WORKING, headline)
    return Verdict(VerdictKind.WORKING, text("Only {ran} ran and found no problem.", ran=ran))


def _not_set_up(report: Report, bad: Sequence[Finding]) -> Message | None:
    """A home without a platform, whose gateway is not running, is not set up yet."""
    stopped = bool(report.ladder) and report.ladder[0].hold is RungState.FAILED
    if not stopped or not _has_no_platform(report):
        return None
    sentence = text("This home is not set up yet: no platform is switched on.")
    return sentences(sentence, text("It has {problems}.", problems=_problems(bad)) if bad else "")


def _has_no_platform(report: Report) -> bool:
    parts = report.parts("platforms")
    return bool(parts) and parts[0].text == NO_PLATFORM


def _problems(bad: Sequence[Finding]) -> str:
    """How many problems there are; warnings, if there is nothing worse."""
    errors = any(finding.severity.rank <= Severity.ERROR.rank for finding in bad)
    return count(len(bad), "problem" if errors else "warning")


def _stopped(report: Report, process: Rung, bad: Sequence[Finding]) -> Message:
    broken = [finding for finding in bad if not _is_down(report, finding)]
    if broken and (error := _first_error(report)):
        return text("Your bot is stopped. Repair this before you start it: {error}.", error=error)
    down = next((one for one in report.findings if _is_down(report, one)), None)
    since = (down and down.since) or process.since
    if since:
        return text("Your bot has been stopped since {since}.", since=_moment(since))
    return text("Your bot is not running. Its files do not show whether it has ever run.")


def _is_down(report: Report, finding: Finding) -> bool:
    return part_of(finding, report.effects) == DOWN


def _unsure(report: Report) -> Message | None:
    """Why it is unknown whether the bot works, although its gateway runs."""
    if crashed := report.count_checks(Status.CRASHED):
        return text(
            "Could not determine whether your bot is working: {crashed} crashed.",
            crashed=count(crashed, "check"),
        )
    if report.why_blind:
        return text(
            "Could not determine whether your bot is working: {reason}", reason=report.why_blind
        )
    return None


def _undetermined(reason: str) -> Message:
    return text("Could not determine whether your bot is working: {reason}.", reason=reason)


def _unseen(report: Report) -> Message | None:
    """Why the platforms of this home are not known, such as a .env that cannot be read."""
    parts = report.parts("platforms")
    if len(parts) != 1 or not parts[0].text.startswith(UNSEEN):
        return None
    return _undetermined(parts[0].text.removeprefix(UNSEEN))


def _waits(report: Report) -> Message | None:
    """A message that has not been answered for too long."""
    answers = report.rung(ANSWERS)
    if answers is None or answers.hold is not RungState.FAILED or not answers.since:
        return None
    return text("A message has been waiting for an answer for {age}.", age=_age(answers.since))


def _limited(report: Report, bad: Sequence[Finding]) -> Message:
    answers = _holds(report, ANSWERS)
    if silent := _platforms_with(report, Mark.BAD):
        template = (
            "Your bot is working, but nobody on {platforms} gets an answer."
            if answers
            else "Your bot is running, but nobody on {platforms} gets an answer."
        )
        return text(template, platforms=silent)
    if _has_no_platform(report):
        return text("The gateway is running, but no platform is set up: nobody can write to it.")
    if later := next((finding for finding in bad if fails_later(report, finding)), None):
        template = (
            "Your bot is working now, but its next start will fail: {cause}."
            if answers
            else "Your bot is running now, but its next start will fail: {cause}."
        )
        return text(template, cause=later.title)
    error = _first_error(report)
    if not answers:
        return _not_tried_with(report, _problems(bad), error)
    if fallback := next((one for one in bad if one.data.get("fallback")), None):
        return text("Your bot is working with its fallback model: {cause}.", cause=fallback.title)
    if error:
        return text("Your bot is working with limits: {error}.", error=error)
    return text("Your bot is working. {problems}.", problems=_problems(bad))


def _platforms_with(report: Report, mark: Mark) -> str:
    """The names of the platforms in this state, as one text."""
    names = [part.text.split(":")[0] for part in _platform_parts(report) if part.mark is mark]
    return listed(names) if names else ""


def _not_tried_with(report: Report, problems: str, error: Message | None) -> Message:
    """It runs with problems, and no answer since its start proves that it works."""
    if error:
        problems = text("Problem: {error}", error=error)
    if _holds(report, MESSAGES):
        return text(
            "Your bot is running, but has not answered yet since it started. {problems}.",
            problems=problems,
        )
    if _holds(report, PLATFORMS) and any(
        rung.name == MESSAGES and rung.since is None for rung in report.ladder
    ):
        return text("Your bot is running, not tried yet. {problems}.", problems=problems)
    return text("The gateway is running. {problems}.", problems=problems)


def _holds(report: Report, name: str) -> bool:
    rung = report.rung(name)
    return rung is not None and rung.hold is RungState.OK


def _working(report: Report) -> Message:
    """The time of the last answer proves it."""
    went, came = report.rung(ANSWERS), report.rung(MESSAGES)
    assert went is not None
    assert went.since is not None
    if came and came.since and came.hold is RungState.OK:
        return text(
            "Your bot is working. Last message {message} ago, last answer {answer} ago.",
            message=_age(came.since),
            answer=_age(went.since),
        )
    if went.what == ANSWERED:
        return text("Your bot is working. It answered a question {age} ago.", age=_age(went.since))
    return text("Your bot is working. Last answer {answer} ago.", answer=_age(went.since))


def _not_tried(report: Report) -> Message:
    """It runs without a problem, and no answer since its start proves that it works."""
    came = report.rung(MESSAGES)
    if came and came.since and came.hold is RungState.OK:
        return text(
            "Your bot is running. Last message {message} ago, no answer yet.",
            message=_age(came.since),
        )
    if _holds(report, PLATFORMS) and came and came.since:
        return text("Your bot is running. No message since {time}.", time=clock(came.since))
    if _holds(report, PLATFORMS):
        return text("Your bot is running, not tried yet: no message since it started.")
    if _has_no_platform(report):
        return text("The gateway is running without a platform; no problem was found.")
    if late := _platforms_with(report, Mark.LIMITED):
        return text("Your bot is running, not connected yet: {platforms}.", platforms=late)
    process = report.ladder[0]
    if process.since:
        return text(
            "The gateway has been running since {since}; no problem was found.",
            since=ago(process.since),
        )
    return text("The gateway is running; no problem was found.")


def _age(moment: datetime) -> str:
    return duration((datetime.now(UTC) - moment).total_seconds())
