"""Find the running gateways of other homes, and the one that a copied home's files name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.processes import gateway_processes, process_stat
from hermes_doctor.processes.gateway_command import is_gateway, profile_in
from hermes_doctor.processes.home_of import (
    home_by_environment,
    home_by_lock_file,
    is_same_folder,
)
from hermes_doctor.processes.lineage import command_line

if TYPE_CHECKING:
    from hermes_doctor.processes.gateway_processes import CommandLines
    from hermes_doctor.processes.runtime_files import Runtime

BELIEVING = (0, 17)
"""The first release that trusts the state file without checking the lock."""
ENDED = (None, "stopped", "startup_failed")
"""The states in which Hermes does not believe that the named process is a gateway."""


class OtherGateway(NamedTuple):
    """A running gateway of another home."""

    pid: int
    home: Path
    blocks: bool = False
    """Whether Hermes takes it for the gateway of this home and does not start another one."""


def running_elsewhere(home: Home, lines: CommandLines) -> Iterator[OtherGateway]:
    """Yield the running gateways of other homes among these processes, as far as we may see."""
    for one in gateway_processes.candidates(lines):
        if one.claim and one.seems_to_work and not is_same_folder(one.claim.home, home.path):
            yield OtherGateway(one.gateway.pid, one.claim.home)


def named_in(home: Home, runtime: Runtime, release: tuple[int, ...] | None) -> OtherGateway | None:
    """Return the gateway of another home that the files of this home name, as after a copy."""
    for owner in (runtime.state_owner, runtime.pid_file, runtime.lock_file):
        seen = process_stat.stat(owner.pid) if owner else None
        if owner is None or seen is None or seen.doing == "Z":
            continue
        if owner.start_time not in (None, seen.start_time):
            continue
        argv = command_line(owner.pid)
        if not is_gateway(argv):
            continue
        claim = home_by_lock_file(owner.pid) or home_by_environment(owner.pid, profile_in(argv))
        if claim is None or is_same_folder(claim.home, home.path):
            continue
        believed = owner is runtime.state_owner and runtime.state not in ENDED
        trusting = release is None or release >= BELIEVING
        return OtherGateway(owner.pid, claim.home, believed and trusting)
    return None
