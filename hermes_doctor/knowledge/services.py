"""The unit that each release writes for its gateway."""

from __future__ import annotations

from collections.abc import Mapping

from hermes_doctor.knowledge.data import load_knowledge
from hermes_doctor.lazy import NamedTuple


class ServicePlan(NamedTuple):
    """What a release puts into its unit."""

    release: str
    settings: Mapping[str, str]
    """Of [Unit] and [Service], without what depends on the machine."""
    drain: float
    """Seconds that work in progress gets before a restart, unless config.yaml says otherwise."""


def service_plan(version: str) -> ServicePlan | None:
    """The unit of a release; of one that is not known, that of the newest known before it."""
    from hermes_doctor.knowledge.releases import release

    known = load_knowledge("services")
    before = [name for name in known if release(name) <= release(version)]
    if not before:
        return None
    name = max(before, key=release)
    return ServicePlan(name, known[name]["unit"], float(known[name]["drain"]))
