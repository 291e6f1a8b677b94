"""Correct a malformed line of .env."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Mend, Probes, Safety, fix, odd_lines

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="mend-env-line", codes=["ENV-LINE"], safety=Safety.SAFE)
def mend_env_line(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Correct the malformed line of .env."""
    from hermes_doctor.api import edit_env, reload

    env = probes.env()
    if env is None:
        return
    for one in odd_lines(env, probes.resolved().world):
        if one.number == finding.data["line"] and one.new is not None:
            yield from edit_env(probes, "correct the line", Mend(one.number, one.old, one.new))
            yield from reload(probes, "platform")
            return
