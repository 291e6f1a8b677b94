"""Turn the `edits` in a finding's data into steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hermes_doctor.message import text
from hermes_doctor.model import CannotFix, Finding
from hermes_doctor.planning.setting_edits import (
    FALLBACK,
    GONE,
    KEY,
    MODEL,
    VARIABLE,
    edit_config,
    edit_env,
    restart_if_running,
)
from hermes_doctor.settings.edit.edits import ConfigEdit, Drop, Edit, Put, Rename, Unset
from hermes_doctor.steps.base import Step

if TYPE_CHECKING:
    from hermes_doctor.probes.probes import Probes


def apply_finding_edits(probes: Probes, finding: Finding, why: str) -> Iterator[Step]:
    """Make steps for the finding's `edits` of config.yaml and .env, and the restart they need."""
    edits: tuple[Edit, ...] = finding.data.get("edits", ())
    if not edits:
        raise CannotFix("The files do not show the right value. Correct the setting by hand.")
    config = [edit for edit in edits if isinstance(edit, Put | Rename | Drop)]
    env = [edit for edit in edits if not isinstance(edit, Put | Rename | Drop)]
    steps: list[Step] = []
    if config:
        _refuse_comments(probes, config)
        steps += edit_config(probes, why, *config)
    if env:
        steps += edit_env(probes, why, *env)
    if steps:
        yield from steps
        yield from restart_if_running(probes, *dict.fromkeys(map(_noticed, edits)))


def _refuse_comments(probes: Probes, edits: Sequence[ConfigEdit]) -> None:
    """Refuse to remove or rewrite a block with comments, because they would be lost."""
    from hermes_doctor.settings.edit import yaml_text

    file = probes.config()
    for edit in edits if file else ():
        whole = isinstance(edit, Drop) or (isinstance(edit, Put) and not _is_plain(edit.value))
        if file and whole and yaml_text.holds_comments(file.data, edit.path):
            raise CannotFix(
                text(
                    "{key} contains comments, which would be lost. Change it by hand.",
                    key=".".join(map(str, edit.path)),
                )
            )


def _is_plain(value: object) -> bool:
    return not isinstance(value, dict | list)


def _noticed(edit: Edit) -> str:
    """What kind of change a gateway must notice for an edit."""
    if isinstance(edit, Unset):
        return GONE
    if not isinstance(edit, Put | Rename | Drop):
        return KEY
    if str(edit.path[0]).startswith("fallback"):
        return FALLBACK
    return VARIABLE if isinstance(edit, Put) and "${" in str(edit.value) else MODEL
