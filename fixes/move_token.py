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
    """Move the token from config.yaml to its variable in .env."""
    from hermes_doctor.api import edit_config, edit_env, reload

    found = probes.resolved()
    for one in passed_over(found):
        if one.path != finding.data["path"]:
            continue
        token = value_of(found, one.value) if "${" in one.value else one.value
        if one.harm and not token:
            raise CannotFix("the variable that it refers to is not set; put the token into .env")
        if not one.harm:
            yield from edit_config(probes, "it is not read there", Drop(one.path))
        elif one.instead:
            yield from edit_env(probes, "it is read from here", Assign(one.instead, str(token)))
            yield from edit_config(probes, "it is not read there", Drop(one.path))
        else:
            block = ("platforms", one.platform)
            moved = (Put((*block, "enabled"), True), Put((*block, "token"), str(token)))
            yield from edit_config(probes, "it is read from there", *moved, Drop(one.path))
        yield from reload(probes, "platform")
