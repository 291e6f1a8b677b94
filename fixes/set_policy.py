"""Replace or remove an access policy of a platform that Hermes rejects or does not know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Assign, Finding, Probes, Put, Safety, Unset, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="set-policy", codes=["AUTHZ-OPEN-REFUSE", "PLATFORM-POLICY"], safety=Safety.CONFIRM)
def set_policy(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Correct the access policy of the platform."""
    from hermes_doctor.api import edit_config, edit_env, reload

    value = finding.data["value"]
    why = f"set the policy to {value}" if value else "remove it, so that the default applies"
    if "path" in finding.data:
        yield from edit_config(probes, why, Put(finding.data["path"], value))
    else:
        name = finding.data["variable"]
        yield from edit_env(probes, why, Assign(name, value) if value else Unset(name))
    yield from reload(probes, "platform")
