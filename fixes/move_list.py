"""Move an allowlist from config.yaml to the variable in .env that the platform reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Assign, Drop, Finding, Probes, Safety, fix, unheard

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="move-list", codes=["CFG-ALLOWLIST-KEY"], safety=Safety.CONFIRM)
def move_list(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Move the allowlist from config.yaml to .env."""
    from hermes_doctor.api import edit_config, edit_env, reload

    found = probes.resolved()
    for one in unheard(found):
        if one.path == finding.data["path"] and one.variable:
            before = [word.strip() for word in found.world.getenv(one.variable).split(",")]
            users = ",".join(word for word in (*before, *one.users) if word)
            yield from edit_env(
                probes, "write the allowlist where Hermes reads it", Assign(one.variable, users)
            )
            yield from edit_config(
                probes, "remove the allowlist that Hermes ignores", Drop(one.path)
            )
            yield from reload(probes, "access")
