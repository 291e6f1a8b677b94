"""Find the root home's gateway that serves a profile without a gateway of its own."""

from __future__ import annotations

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook, Gateway
from hermes_doctor.processes import gateway_processes, process_stat, runtime_files

_SETTING = "multiplex_profiles"
_VARIABLE = "GATEWAY_MULTIPLEX_PROFILES"


class Listed(NamedTuple):
    """The gateway of the root home, which lists this profile as served."""

    gateway: Gateway
    stale: bool
    """It does not serve the profile: an earlier gateway wrote the list."""


def listed_by(home: Home) -> Listed | None:
    """Return the running gateway whose state file lists this profile as served."""
    if home.profile is None:
        return None
    root = Home(home.path.parent.parent)
    said = runtime_files.find(root)
    if home.profile not in said.served:
        return None
    running = gateway_processes.gateways_of(root)
    owner = runtime_files.with_our_pids(said, [one.pid for one in running]).state_owner
    found = next((one for one in running if owner is not None and one.pid == owner.pid), None)
    return Listed(found, _is_alone(root, found)) if found else None


def _is_alone(root: Home, gateway: Gateway) -> bool:
    """Whether the root's gateway was started with settings that let it serve no other profile.

    Hermes keeps the list of an earlier gateway in gateway_state.json if the next one writes none.
    """
    from hermes_doctor.settings import config_file, env_file

    try:
        config, env = config_file.read(root), env_file.read(root)
        environment = process_stat.environment(gateway.pid)
    except (CouldNotLook, OSError):
        return False
    values = config.values if config else None
    if config is None or values is None or environment is None or _VARIABLE in environment:
        return False
    if config.snapshot.mtime_ns / 1e9 > gateway.started_at.timestamp():
        return False
    if env and _VARIABLE.encode() in env.data:
        return False
    nested = values.get("gateway")
    nested = nested.get(_SETTING) if isinstance(nested, dict) else None
    return False in (values.get(_SETTING), nested) and True not in (values.get(_SETTING), nested)
