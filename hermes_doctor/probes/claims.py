"""What the running gateway itself says of its platforms, without what an earlier one said.

The state file keeps what was said of every platform there ever was, across restarts: only what
this very process has written since it began counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from hermes_doctor.model import Gateway
from hermes_doctor.processes.runtime_files import PlatformState, Runtime

_SLACK = timedelta(seconds=2)
"""Clocks of the kernel and of the file may differ by that much."""


def valid(runtime: Runtime, gateway: Gateway) -> Mapping[str, PlatformState] | None:
    """The claims of this process by platform; None when the file is not its own."""
    if runtime.state_owner is None or runtime.state_owner.pid != gateway.pid:
        return None
    since = gateway.started_at - _SLACK
    return {
        name: said
        for name, said in runtime.platforms.items()
        if said.updated_at is not None and said.updated_at >= since
    }
