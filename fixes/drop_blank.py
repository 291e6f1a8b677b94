"""Remove an empty line `NAME=` from .env that erases a variable of the gateway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, Unset, fix, text

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="drop-blank", codes=["ENV-BLANK"], safety=Safety.SAFE)
def drop_blank(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Take the line without a value out, so that the variable keeps the one it is started with."""
    from hermes_doctor.api import edit_env, reload

    name = finding.data["name"]
    if name in probes.resolved().world.readings.dotenv.again:
        raise CannotFix(
            text("{subject} stands in .env more than once; decide by hand", subject=finding.subject)
        )
    yield from edit_env(probes, "it is empty", Unset(name))
    yield from reload(probes, "platform")
