"""Dashboards of a home that listen to others than this machine without asking for a password.

From 0.18 on there is none: Hermes refuses to listen so.
"""

from __future__ import annotations

from hermes_doctor.home import Home
from hermes_doctor.probes import processes
from hermes_doctor.probes.belonging import by_environment, is_same
from hermes_doctor.settings.apiserver import is_local
from hermes_doctor.values import NamedTuple


class Dashboard(NamedTuple):
    """One that runs."""

    pid: int
    host: str


def exposed(home: Home) -> list[Dashboard]:
    """Those of this home that anybody on the network can use."""
    found = []
    for pid in processes.every():
        argv = processes.words_of(pid)
        if "--insecure" not in argv or not processes.runs(argv, "dashboard"):
            continue
        host = _option(argv, "--host")
        claim = by_environment(pid, processes.profile(argv)) if host else None
        if host and not is_local(host) and claim and is_same(claim.home, home.path):
            found.append(Dashboard(pid, host))
    return found


def _option(argv: list[str], name: str) -> str:
    for number, word in enumerate(argv):
        if word == name:
            return argv[number + 1] if number + 1 < len(argv) else ""
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return ""
