"""Remove an empty line `NAME=` from .env that erases a variable of the gateway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, Unset, fix, text

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="drop-blank", codes=["ENV-BLANK"], safety=Safety.SAFE)
def drop_blank(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Remove the line without a value from .env."""
    from hermes_doctor.api import edit_env, reload

    name = finding.data["name"]
    if name in probes.resolved().world.readings.dotenv.again:
        raise CannotFix(
            text(
                "{name} is set more than once in .env. Remove the wrong line by hand.",
                name=finding.subject,
            )
        )
    yield from edit_env(probes, "remove the line without a value", Unset(name))
    yield from reload(probes, "platform")
