"""Correct an invalid `session_reset` setting or remove an invalid SESSION_RESET_HOUR."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Put, Safety, Unset, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="mend-session-reset", codes=["CFG-SESSION-RESET"], safety=Safety.CONFIRM)
def mend_session_reset(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Write the number or the word that was meant, else the one that Hermes takes anyway."""
    from hermes_doctor.api import edit_config, edit_env, reload

    if "variable" in finding.data:
        name = finding.data["variable"]
        yield from edit_env(probes, "config.yaml or Hermes' own hour counts", Unset(name))
    else:
        path, value = finding.data["path"], finding.data["value"]
        yield from edit_config(probes, f"{path[-1]} is {value}", Put(path, value))
    yield from reload(probes, "platform")
