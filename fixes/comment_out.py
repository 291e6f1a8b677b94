"""Comment out lines of .env that are duplicates or that override config.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Mend, Probes, Safety, fix, lines_of

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="comment-out", codes=["ENV-DUP", "ENV-SHADOWS-CONFIG"], safety=Safety.CONFIRM)
def comment_out(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Comment out duplicate or overriding lines of .env."""
    from hermes_doctor.api import edit_env, reload

    env = probes.env()
    if env is None:
        return
    if env.text is None:
        raise CannotFix("The file .env is not UTF-8. Save it as UTF-8 first.")
    name, wanted = finding.data["name"], finding.data["lines"]
    found = lines_of(env, probes.resolved().world, name)
    if found is None:
        raise CannotFix("The value has several lines in .env. Remove it by hand.")
    edits = [
        Mend(number, old, f"# {old}") for number, old in found if number in wanted or not wanted
    ]
    yield from edit_env(probes, "comment out the line", *edits)
    if not wanted:
        yield from reload(probes, "platform", "access")
