"""Write a credential into .env that was set only as an unexpanded reference `${NAME}`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Assign, CannotFix, Finding, Probes, Safety, fix, text

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="fill-in-token", codes=["PLATFORM-CREDENTIALS"], safety=Safety.CONFIRM)
def fill_in_token(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Write the value that config.yaml refers to into .env under the name that Hermes reads."""
    from hermes_doctor.api import edit_env, reload

    name, other = finding.data["variable"], finding.data["other"]
    value = probes.resolved().world.getenv(other)
    if not value:
        raise CannotFix(text("{other} is not set any more", other=other))
    yield from edit_env(probes, f"as {other} has it", Assign(name, str(value)))
    yield from reload(probes, "platform")
