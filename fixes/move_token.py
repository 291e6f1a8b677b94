"""Move a platform's token to the place where Hermes reads it, or drop an unused one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    Assign,
    CannotFix,
    Drop,
    Finding,
    Probes,
    Put,
    Safety,
    fix,
    passed_over,
    value_of,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="move-token", codes=["CFG-IGNORED"], safety=Safety.CONFIRM)
def move_token(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Move the token to where Hermes reads it."""
    from hermes_doctor.api import edit_config, edit_env, reload

    found = probes.resolved()
    for one in passed_over(found):
        if one.path != finding.data["path"]:
            continue
        token = value_of(found, one.value) if "${" in one.value else one.value
        if one.harm and not token:
            raise CannotFix(
                "The variable with the token is not set. Write the token into .env yourself."
            )
        if not one.harm:
            yield from edit_config(probes, "remove the token that Hermes ignores", Drop(one.path))
        elif one.instead:
            yield from edit_env(
                probes, "write the token where Hermes reads it", Assign(one.instead, str(token))
            )
            yield from edit_config(probes, "remove the token that Hermes ignores", Drop(one.path))
        else:
            block = ("platforms", one.platform)
            moved = (Put((*block, "enabled"), True), Put((*block, "token"), str(token)))
            yield from edit_config(
                probes, "move the token to where Hermes reads it", *moved, Drop(one.path)
            )
        yield from reload(probes, "platform")
