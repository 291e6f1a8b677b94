"""The edits that a finding carries along, as steps of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.editing.edits import Drop, Edit, Put, Rename, Unset
from hermes_doctor.editing.planning import (
    FALLBACK,
    GONE,
    KEY,
    MODEL,
    VARIABLE,
    edit_config,
    edit_env,
    reload,
)
from hermes_doctor.model import CannotFix, Finding
from hermes_doctor.steps import Step

if TYPE_CHECKING:
    from hermes_doctor.probes import Probes


def do_edits(probes: Probes, finding: Finding, why: str) -> Iterator[Step]:
    """Steps for `edits` of the finding, each in the file that it is for, and what they need."""
    edits: tuple[Edit, ...] = finding.data.get("edits", ())
    if not edits:
        raise CannotFix("what to write cannot be told from the files")
    config = [edit for edit in edits if isinstance(edit, Put | Rename | Drop)]
    env = [edit for edit in edits if not isinstance(edit, Put | Rename | Drop)]
    steps: list[Step] = []
    if config:
        steps += edit_config(probes, why, *config)
    if env:
        steps += edit_env(probes, why, *env)
    if steps:
        yield from steps
        yield from reload(probes, *dict.fromkeys(map(_noticed, edits)))


def _noticed(edit: Edit) -> str:
    """What a gateway must notice of an edit."""
    if isinstance(edit, Unset):
        return GONE
    if not isinstance(edit, Put | Rename | Drop):
        return KEY
    if str(edit.path[0]).startswith("fallback"):
        return FALLBACK
    return VARIABLE if isinstance(edit, Put) and "${" in str(edit.value) else MODEL
