"""Look up the systemd unit that each Hermes release writes for its gateway."""

from __future__ import annotations

from collections.abc import Mapping

from hermes_doctor.knowledge.data import load_knowledge
from hermes_doctor.lazy import NamedTuple


class ReleaseUnit(NamedTuple):
    """The settings that a release writes into its systemd unit."""

    release: str
    settings: Mapping[str, str]
    """The settings of [Unit] and [Service], without those that depend on the machine."""
    drain: float
    """Seconds that work in progress gets before a restart, unless config.yaml overrides it."""


def service_plan(version: str) -> ReleaseUnit | None:
    """Return the unit of a release; for an unknown release, that of the newest known before it."""
    from hermes_doctor.knowledge.releases import parse_release

    known = load_knowledge("services")
    before = [name for name in known if parse_release(name) <= parse_release(version)]
    if not before:
        return None
    name = max(before, key=parse_release)
    return ReleaseUnit(name, known[name]["unit"], float(known[name]["drain"]))
