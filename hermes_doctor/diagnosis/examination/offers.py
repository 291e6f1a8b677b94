"""Find out which fixes refuse their findings, so that a report offers only what can be done."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from hermes_doctor.core.home import Home
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CannotFix, Finding
from hermes_doctor.core.system import root_parent, time_limits
from hermes_doctor.diagnosis.plugins.declare import Fix
from hermes_doctor.diagnosis.probes.probes import Probes

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.step import Step

MAX_PLANS = 40
"""How many findings are planned; a report with more offers the rest without asking."""
MAX_STEPS = 1000
"""How many steps of a plan are looked at; a longer plan counts as not refusing."""
LIMIT = 10.0
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
            min(time_limits.stretch(LIMIT), left)
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
    except BaseException:  # noqa: BLE001 (a real Ctrl-C does not arrive in this thread)
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
