"""Refuse to start a gateway in a copied home whose state file names the original's gateway.

Hermes trusts gateway_state.json: it does not start while the process named there runs, and with
`--replace` it even stops that process. So we never use `--replace`, and do not call Hermes if it
would not start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_doctor.core.model import CannotFix
from hermes_doctor.diagnosis.probes.other_homes import BELIEVING, ENDED
from hermes_doctor.hermes.processes import process_stat
from hermes_doctor.hermes.processes.home_of import holds_lock_in, is_gateway
from hermes_doctor.hermes.processes.lineage import command_line

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.probes.probes import Probes


def refuse_copied_home(probes: Probes) -> None:
    """Raise CannotFix if Hermes would mistake the gateway of another home for this one's."""
    runtime = probes.gateway.runtime()
    named = runtime.state_owner
    if named is None or runtime.state in ENDED:
        return
    seen = process_stat.stat(named.pid)
    if seen is None or seen.doing == "Z" or named.start_time not in (None, seen.start_time):
        return
    if not is_gateway(command_line(named.pid)) or holds_lock_in(named.pid, probes.home.path):
        return
    installation = probes.hermes.installation()
    if installation is not None and installation.release < BELIEVING:
        return
    raise CannotFix(
        "gateway_state.json names process {pid}, the gateway of another home, so Hermes would "
        "not start. The home was probably copied: move that file away first.",
        pid=named.pid,
    )
