"""Rewrite .env as UTF-8 without a byte order mark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="rewrite-env", codes=["ENV-BOM"], safety=Safety.SAFE)
def rewrite_env(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Rewrite .env as UTF-8."""
    from hermes_doctor.api import ReplaceFile, refuse_managed

    env = probes.env()
    if env is None or (env.mark is None and env.text is not None and b"\0" not in env.data):
        return
    if env.text is None or "\0" in env.text:
        raise CannotFix("The encoding of .env is unclear. Save it as UTF-8 with your editor.")
    refuse_managed(probes)
    yield ReplaceFile(
        env.path,
        env.text.encode("utf-8"),
        why="rewrite it as UTF-8 without a byte order mark",
        expect=env.snapshot,
        before=env.data,
    )
