"""Write a credential into .env that was set only as an unexpanded reference `${NAME}`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Assign, CannotFix, Finding, Probes, Safety, fix, text

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="fill-in-token", codes=["PLATFORM-CREDENTIALS"], safety=Safety.CONFIRM)
def fill_in_token(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Write the credential into .env under its own name."""
    from hermes_doctor.api import edit_env, reload

    name, other = finding.data["variable"], finding.data["other"]
    value = probes.resolved().world.getenv(other)
    if not value:
        raise CannotFix(
            text("{name} was removed. Write the credential into .env yourself.", name=other)
        )
    yield from edit_env(
        probes,
        text("set {name} to the value of {other}", name=name, other=other),
        Assign(name, str(value)),
    )
    yield from reload(probes, "platform")
