"""Find the root home's gateway that serves a profile without a gateway of its own."""

from __future__ import annotations

from hermes_doctor.home import Home
from hermes_doctor.model import Gateway
from hermes_doctor.processes import gateway_processes, runtime_files


def server_of(home: Home) -> Gateway | None:
    """Return the running gateway that lists this profile as served."""
    if home.profile is None:
        return None
    root = Home(home.path.parent.parent)
    said = runtime_files.find(root)
    if home.profile not in said.served:
        return None
    running = gateway_processes.gateways_of(root)
    owner = runtime_files.with_our_pids(said, [one.pid for one in running]).state_owner
    return next((one for one in running if owner is not None and one.pid == owner.pid), None)
