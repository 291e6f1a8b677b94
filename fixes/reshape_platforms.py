"""Rewrite how config.yaml switches a platform on or off in the form that Hermes reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hermes_doctor.api import (
    CannotFix,
    Finding,
    PassedOver,
    Probes,
    Put,
    Safety,
    fix,
    passed_over,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="reshape-platforms", codes=["CFG-IGNORED"], safety=Safety.CONFIRM)
def reshape_platforms(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Write platforms in the form that Hermes reads."""
    from hermes_doctor.api import edit_config, reload

    config = probes.config()
    written = (config.values if config else None) or {}
    for one in passed_over(probes.resolved()):
        if one.path == finding.data["path"]:
            edit = _edit(one, written.get("platforms"))
            yield from edit_config(probes, "use the form that Hermes reads", edit)
            yield from reload(probes, "platform")


def _edit(one: PassedOver, platforms: Any) -> Put:
    if one.kind == "unstarted":
        return Put((*one.path, "enabled"), True)
    if one.kind == "switch":
        return Put(one.path, {"enabled": one.value})
    listed = platforms if isinstance(platforms, list) else [platforms]
    made: dict[str, Any] = {}
    for item in listed:
        if isinstance(item, str):
            made[item.strip()] = {"enabled": True}
        elif isinstance(item, dict) and all(isinstance(block, dict) for block in item.values()):
            made |= {str(name): {"enabled": True} | block for name, block in item.items()}
        else:
            raise CannotFix(
                text(
                    "{key} in config.yaml contains more than names of platforms. Correct it by "
                    "hand.",
                    key=one.path[0],
                )
            )
    return Put(one.path, made)
