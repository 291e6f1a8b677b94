"""Find out which fixes refuse their findings, so that a report offers only what can be done."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout

from hermes_doctor.model import CannotFix, Finding
from hermes_doctor.plugins.declare import Fix
from hermes_doctor.probes.probes import Probes

MAX_PLANS = 40
"""How many findings are planned; a report with more offers the rest without asking."""


def refusals(
    probes: Probes, fixes: Iterable[Fix], findings: Sequence[Finding]
) -> Mapping[tuple[str, str, str], str]:
    """Plan the fix of each finding and return the reasons of those that refuse.

    A plan changes nothing. If it fails in another way, `fix` will say so.
    """
    known = {fix.id: fix for fix in fixes}
    found = {}
    for finding in [one for one in findings if one.fix in known][:MAX_PLANS]:
        assert finding.fix is not None
        try:
            with redirect_stdout(sys.stderr):  # what a fix prints is not part of the report
                for _ in known[finding.fix].plan(probes, finding):
                    pass
        except CannotFix as why:
            found[(*finding.key, finding.fix)] = str(why)
        except (Exception, SystemExit, GeneratorExit):  # noqa: BLE001
            continue
    return found
