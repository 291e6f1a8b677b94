"""Examine a home with all checks, make the report, and offer only fixes that do not refuse."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import EMPTY
from hermes_doctor.core.message import text
from hermes_doctor.core.model import (
    CannotFix,
    CheckResult,
    CouldNotLook,
    Finding,
    Gateway,
    Report,
    Rung,
    Severity,
    Status,
    known_or,
)
from hermes_doctor.core.outgoing import masked
from hermes_doctor.core.redaction import clean
from hermes_doctor.core.system import limits, root_parent
from hermes_doctor.core.system.limits import SLICE
from hermes_doctor.diagnosis.examination import liveness, states
from hermes_doctor.diagnosis.examination.check_threads import Run
from hermes_doctor.diagnosis.examination.liveness import ladder
from hermes_doctor.diagnosis.examination.verdict import judge
from hermes_doctor.diagnosis.plugins.declare import Check, Fix
from hermes_doctor.diagnosis.plugins.load import Plugins
from hermes_doctor.diagnosis.plugins.mount import Broken
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.supervisors.units import DOCKER

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.step import Step

_FROM_THE_HOME = ("hermes_version", "ladder", "states", "refusals")
"""Fields of a report with texts that are not those of the findings."""
LIMIT = 30.0
"""Seconds for all checks together, counted as on an idle machine, like the limit of each check."""


def examine(
    probes: Probes,
    checks: Sequence[Check],
    *,
    limit: float = LIMIT,
    progress: Callable[[str], None] | None = None,
) -> tuple[list[CheckResult], list[Finding]]:
    """Run every check; return results in the order of the checks, findings worst first."""
    with (
        limits.limited(limits.CHECKS),
        redirect_stdout(sys.stderr),
    ):  # what a check prints is not part of our output
        probes.hermes.choose_knowledge()
        run = Run(probes, checks, limit)
        while not _finish(run, progress):
            time.sleep(SLICE)  # a check has taken all memory; it gets the same error and ends
        ordered = run.answers()
        findings = [finding for answer in ordered for finding in answer.findings]
        # hidden here, secrets cannot come into a report, a history, a receipt or a notice
        results, findings = masked(([answer.result() for answer in ordered], findings))
        return results, sort(findings)


def _finish(run: Run, progress: Callable[[str], None] | None) -> bool:
    """Watch the checks until all have ended; return False if there is no memory for it now."""
    try:
        while run.goes_on():
            run.watch()
            run.tell(progress)
        run.tell(progress)
    except MemoryError:
        return False
    return True


def sort(findings: Sequence[Finding]) -> list[Finding]:
    """Sort findings: worst first, then by code and subject."""
    return sorted(findings, key=lambda f: (f.severity.rank, f.code, f.subject))


@limits.limited()
def report(
    probes: Probes,
    plugins: Plugins,
    checks: Sequence[Check],
    *,
    options: str = "",
    page_options: str = "",
    limit: float = LIMIT,
    progress: Callable[[str], None] | None = None,
    severities: Mapping[str, Severity | None] = EMPTY,
) -> Report:
    """Examine one home and make the report.

    The operator's `severities` replace those of the checks; a code whose severity is None is left
    out, but only after the causes were found.
    """
    started, clock = datetime.now(UTC), time.monotonic()
    results, findings = examine(probes, checks, limit=limit, progress=progress)
    heard = findings
    if findings:
        findings = heard = _explained(probes, plugins, findings, results)
        if severities:
            findings = sort([*with_severities(findings, severities)])
        results = [_joined(result, findings) for result in results]
    fixable = any(finding.fix for finding in findings)
    offered = plugins.fixes if fixable else ()  # a healthy home needs none
    fixes = {fix.id: fix.safety for fix in offered}
    results += masked([broken_plugin_result(broken) for broken in plugins.broken])
    rungs = _ladder(probes)
    made = Report(
        home=probes.home.path,
        hermes_version=_version(probes),
        started_at=started,
        seconds=time.monotonic() - clock,
        checks=tuple(results),
        findings=tuple(findings),
        fixes=fixes,
        personal=frozenset(fix.id for fix in offered if fix.personal),
        options=options,
        page_options=page_options,
        gateways=_gateways(probes),
        ladder=rungs,
        states=states.describe(
            probes,
            rungs,
            heard,
            plugins.effects,
            unchecked=_unchecked(checks, results),
            left_out=_left_out(plugins.checks, checks),
        ),
        turned_down=tuple(one for one in heard if is_turned_down(one, severities)),
        effects=plugins.effects,
        complete=len(checks) == len(plugins.checks),
        refusals=refusals(probes, offered, findings) if fixable else EMPTY,
    )
    made = made._replace(**masked({name: getattr(made, name) for name in _FROM_THE_HOME}))
    return made._replace(verdict=judge(made))


def _explained(
    probes: Probes, plugins: Plugins, findings: list[Finding], results: Sequence[CheckResult]
) -> list[Finding]:
    """The findings that are left after duplicates were merged, with their causes."""
    from hermes_doctor.diagnosis.examination.causes import merge_and_explain

    def platforms() -> set[str] | None:
        return known_or(None, lambda: {one.name for one in probes.settings.platforms()})

    # when the gateway that runs now was started, or this tool last worked on the home
    moments = [gateway.started_at.timestamp() for gateway in _gateways(probes) or ()]
    handled = known_or([], probes.records.handled)
    moments += [one.ended for one in handled if one.proved or one.codes]
    started = max(moments, default=None)
    return sort(merge_and_explain(findings, results, plugins.explanations, platforms, started))


def unseen(home: Home, checks: Sequence[Check], why: Exception) -> Report:
    """Report on a home that could not be looked at: each check is an open question."""
    checked = tuple(
        CheckResult(check.id, check.group, Status.UNKNOWN, reason=clean(str(why)))
        for check in checks
    )
    made = Report(home.path, None, datetime.now(UTC), 0.0, checked, ())
    return made._replace(verdict=judge(made))


def _unchecked(checks: Sequence[Check], results: Sequence[CheckResult]) -> set[str]:
    """The codes of the database checks that could not look, or could look at a part only."""
    unknown = {
        result.id
        for result in results
        if result.group == "databases"
        and (
            result.status in (Status.UNKNOWN, Status.CRASHED)
            or (
                result.status is Status.PROBLEM and result.reason
            )  # why a part could not be checked
        )
    }
    return {code for check in checks if check.id in unknown for code in check.codes}


def _left_out(every: Sequence[Check], run: Sequence[Check]) -> set[str]:
    """The codes of the checks that did not run, because the operator left them out."""
    known = {check.id for check in run}
    return {code for check in every if check.id not in known for code in check.codes}


def with_severities(
    findings: Sequence[Finding], severities: Mapping[str, Severity | None]
) -> Iterator[Finding]:
    """The findings with the severities that the operator chose."""
    for finding in findings:
        severity = severities.get(finding.code, finding.severity)
        if severity is not None:
            yield finding._replace(severity=severity)


def is_turned_down(finding: Finding, severities: Mapping[str, Severity | None]) -> bool:
    """Whether the operator switched the finding off or made it milder."""
    chosen = severities.get(finding.code, finding.severity)
    return chosen is None or chosen.rank > finding.severity.rank


def _joined(result: CheckResult, findings: Sequence[Finding]) -> CheckResult:
    """Correct a check's result if all its findings were dropped or merged into others."""
    own = any(f.check == result.id and f.severity is not Severity.INFO for f in findings)
    if result.status is not Status.PROBLEM or own:
        return result
    return result._replace(status=Status.UNKNOWN if result.reason else Status.OK)


def broken_plugin_result(plugin: Broken) -> CheckResult:
    """The result for a plugin that could not be loaded: it counts as a crashed check."""
    return CheckResult(
        f"plugin:{plugin.path.name}", "plugins", Status.CRASHED, 0.0, f"not loaded: {plugin.why}"
    )


def _version(probes: Probes) -> str | None:
    """The release that runs, that the image of the home's container has, or that is installed."""
    installation = known_or(None, probes.hermes.installation)
    if installation and installation.running:
        return installation.version
    owner = known_or(None, lambda: probes.gateway.supervision().owner)
    label = owner.settings.get("Version", "") if owner and owner.kind == DOCKER else ""
    return label.removeprefix("v") or (installation.version if installation else None)


def _ladder(probes: Probes) -> tuple[Rung, ...]:
    try:
        return liveness.with_answer(probes, ladder(probes))
    except Exception:
        return ()


def _gateways(probes: Probes) -> tuple[Gateway, ...] | None:
    try:
        gateways = tuple(probes.gateway.running())
        return None if not gateways and probes.gateway.runtime().unseen else gateways
    except CouldNotLook:
        return None


MAX_PLANS = 40
"""How many findings are planned; a report with more offers the rest without asking."""
MAX_STEPS = 1000
"""How many steps of a plan are looked at; a longer plan counts as not refusing."""
PLANS_LIMIT = 10.0
"""Seconds for all plans together; what is not planned by then is offered without asking."""


def refusals(
    probes: Probes, fixes: Iterable[Fix], findings: Sequence[Finding]
) -> Mapping[tuple[str, str, str], str]:
    """Plan the fix of each finding and return the reasons of those that refuse.

    A plan changes nothing. If it fails in another way, `fix` will say so.
    """
    known = {fix.id: fix for fix in fixes}
    chosen = [one for one in findings if one.fix in known][:MAX_PLANS]
    found: dict[tuple[str, str, str], str] = {}

    def work() -> None:
        for finding in chosen:
            reason = _refusal(probes, known[finding.fix or ""], finding)
            if reason:
                found[(*finding.key, finding.fix or "")] = reason

    with redirect_stdout(sys.stderr):  # what a fix prints is not part of the report
        thread = threading.Thread(target=work, name="offers", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the number of threads is limited
            return {}
        left = max(0.0, probes.cache.end + 1 - time.monotonic())
        thread.join(
            min(limits.stretch(PLANS_LIMIT), left)
        )  # then it is abandoned: planning only reads
    return dict(found)


def _refusal(probes: Probes, fix: Fix, finding: Finding) -> str | None:
    """Why the fix refuses the finding; None if it does not, or if its plan crashes."""
    try:
        for number, step in enumerate(fix.plan(probes, finding), 1):
            if reason := _obstacle(probes.home, step):
                return reason
            if number >= MAX_STEPS:
                break
    except CannotFix as why:
        return str(why)
    except BaseException:
        return None
    return None


def _obstacle(home: Home, step: Step) -> str | None:
    """Why this user cannot do the step: rights, or a disk that is read-only."""
    from hermes_doctor.diagnosis.step import MachineAction

    user, owner = root_parent.operator(), os.stat(home.path).st_uid
    if user not in (0, owner):
        return text(
            "The home belongs to another user (uid {owner}). Run hermes-doctor as that user, or "
            "with sudo.",
            owner=owner,
        )
    if isinstance(step, MachineAction):
        return None
    for change in step.changes():
        expected = change.expect
        if expected.kind == "file" and user not in (0, expected.uid):
            return text(
                "{path} belongs to uid {owner}, so you may not change it. Run hermes-doctor with "
                "sudo.",
                path=home.name_of(change.path),
                owner=expected.uid,
            )
        folder = next(parent for parent in change.path.parents if parent.exists())
        if not os.access(folder, os.W_OK | os.X_OK):
            return text(
                "{folder} cannot be written: the disk is read-only, or you have no permission. "
                "Make it writable first.",
                folder=folder,
            )
    return None
