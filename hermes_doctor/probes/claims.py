"""Read the platform states that the running gateway wrote itself, not those of an earlier process.

The state file keeps the states of all platforms across restarts, so only those count that this
process has written since it started.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from hermes_doctor.model import Gateway
from hermes_doctor.processes.runtime_files import PlatformState, Runtime

_SLACK = timedelta(seconds=2)
"""The clocks of the kernel and of the file may differ by this much."""


def own_states(runtime: Runtime, gateway: Gateway) -> Mapping[str, PlatformState] | None:
    """Return this process's states by platform; None if another process wrote the file."""
    if runtime.state_owner is None or runtime.state_owner.pid != gateway.pid:
        return None
    since = gateway.started_at - _SLACK
    return {
        name: said
        for name, said in runtime.platforms.items()
        if said.updated_at is not None and said.updated_at >= since
    }
