"""Set the chat to which Hermes delivers the results of scheduled jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Assign, Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="set-home-channel", codes=["CRON-DELIVERY"], safety=Safety.CONFIRM)
def set_home_channel(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Send job results to the only approved user."""
    from hermes_doctor.api import edit_env, reload

    name, chat = finding.data["variable"], finding.data["chat"]
    yield from edit_env(probes, "send results to the only approved user", Assign(name, chat))
    yield from reload(probes, "platform")
