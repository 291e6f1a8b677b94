"""Find dashboards of a home that other machines can use without a password.

From 0.18 on there are none, because Hermes refuses to listen like this.
"""

from __future__ import annotations

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.hermes.processes import home_of
from hermes_doctor.hermes.processes.gateway_processes import CommandLines
from hermes_doctor.hermes.processes.home_of import home_by_environment, is_same_folder
from hermes_doctor.hermes.settings.platform_setup import is_local


class Dashboard(NamedTuple):
    """A running dashboard."""

    pid: int
    host: str


def exposed_dashboards(home: Home, lines: CommandLines) -> list[Dashboard]:
    """Return which of these processes are dashboards that anyone on the network can use."""
    dashboards = []
    for pid, argv, _ in lines:
        if "--insecure" not in argv or not home_of.runs_command(argv, "dashboard"):
            continue
        host = _option(argv, "--host")
        claim = home_by_environment(pid, home_of.profile_in(argv)) if host else None
        if host and not is_local(host) and claim and is_same_folder(claim.home, home.path):
            dashboards.append(Dashboard(pid, host))
    return dashboards


def _option(argv: list[str], name: str) -> str:
    for number, word in enumerate(argv):
        if word == name:
            return argv[number + 1] if number + 1 < len(argv) else ""
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return ""
