"""Remove NUL bytes from .env where the rest is plain text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="remove-nul", codes=["ENV-BOM"], safety=Safety.CONFIRM)
def remove_nul(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Remove NUL bytes from .env."""
    from hermes_doctor.api import ReplaceFile, refuse_managed

    env = probes.env()
    if env is None or b"\0" not in env.data:
        return
    rest = env.without_nul()
    if rest is None:
        raise CannotFix("The rest of .env is not plain text. Write it again by hand.")
    refuse_managed(probes)
    yield ReplaceFile(
        env.path,
        rest,
        why="remove the NUL bytes; a variable after them gets its own line",
        expect=env.snapshot,
        before=env.data,
    )
