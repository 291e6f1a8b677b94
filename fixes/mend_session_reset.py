"""Correct a wrong `session_reset` setting, or remove a wrong variable that overrides it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Put, Safety, Unset, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="mend-session-reset", codes=["CFG-SESSION-RESET"], safety=Safety.CONFIRM)
def mend_session_reset(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Correct the times at which conversations are reset."""
    from hermes_doctor.api import edit_config, edit_env, reload

    if "variable" in finding.data:
        name = finding.data["variable"]
        yield from edit_env(probes, f"remove {name}, so that the default applies", Unset(name))
    else:
        path, value = finding.data["path"], finding.data["value"]
        yield from edit_config(probes, f"set {path[-1]} to {value}", Put(path, value))
    yield from reload(probes, "platform")
