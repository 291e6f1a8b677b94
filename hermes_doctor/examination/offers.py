"""Find out which fixes refuse their findings, so that a report offers only what can be done."""

from __future__ import annotations

import queue
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from functools import partial

from hermes_doctor.model import CannotFix, Finding
from hermes_doctor.plugins.declare import Fix
from hermes_doctor.probes.probes import Probes
from hermes_doctor.system import threads, time_limits

MAX_PLANS = 40
"""How many findings are planned; a report with more offers the rest without asking."""
MAX_STEPS = 1000
"""How many steps of a plan are asked for; one that has more does not refuse."""
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
    done: queue.SimpleQueue[None] = queue.SimpleQueue()

    def work() -> None:
        for finding in chosen:
            reason = _refusal(probes, known[finding.fix or ""], finding)
            if reason:
                found[(*finding.key, finding.fix or "")] = reason
        done.put(None)

    with redirect_stdout(sys.stderr):  # what a fix prints is not part of the report
        threads.start(partial(work), "offers")
        try:
            done.get(timeout=time_limits.stretch(LIMIT))
        except queue.Empty:  # its thread is abandoned: planning only reads
            return dict(found)
    return found


def _refusal(probes: Probes, fix: Fix, finding: Finding) -> str | None:
    """Why the fix refuses the finding; None if it does not, or if its plan crashes."""
    try:
        for number, _ in enumerate(fix.plan(probes, finding), 1):
            if number >= MAX_STEPS:
                break
    except CannotFix as why:
        return str(why)
    except (Exception, SystemExit, GeneratorExit):  # noqa: BLE001
        return None
    return None
