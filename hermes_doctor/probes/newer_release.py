"""Tell whether a home's Hermes is newer than the newest release that hermes-doctor knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_doctor.knowledge import data
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook

if TYPE_CHECKING:
    from hermes_doctor.probes.database_files import DatabaseProbes

MOST = 10_000
"""No release will have a higher version number; a higher one is damage."""


def reason(probes: DatabaseProbes) -> str | None:
    """Return why knowledge about releases does not apply to this home; None if it does.

    The files that Hermes wrote count too, because the Hermes that uses a home may be in a container
    or not the one that was found here.
    """
    installed = probes.installation()
    learned = data.learned_of(installed.release) if installed else None
    if installed is not None and installed.release > data.NEWEST and learned is None:
        return text("Hermes {version} is newer than hermes-doctor knows", version=installed.version)
    config, schema = (learned.config, learned.schema) if learned else (0, 0)
    if _beyond(_config_version(probes), max(config, data.NEWEST_CONFIG)):
        return "config.yaml is from a newer Hermes than hermes-doctor knows"
    if _beyond(_schema_version(probes), max(schema, data.NEWEST_SCHEMA)):
        return "state.db is from a newer Hermes than hermes-doctor knows"
    return None


def can_learn(probes: DatabaseProbes) -> bool:
    """Whether `hermes-doctor learn` can ask the Hermes of this home for what is unknown.

    A release in the files of this tool has nothing to add, but a checkout may differ from it.
    """
    from hermes_doctor.installation.details import read_details

    found = probes.installation()
    return found is not None and (
        found.version not in data.shipped_releases() or read_details(found).revision is not None
    )


def _beyond(version: Any, newest: int) -> bool:
    return type(version) is int and newest < version <= MOST


def _config_version(probes: DatabaseProbes) -> Any:
    try:
        document = probes.resolved().world.document
    except CouldNotLook:
        return None
    return document.values.get("_config_version") if document.values else None


def _schema_version(probes: DatabaseProbes) -> Any:
    path = probes.home / "state.db"
    try:
        known = path in probes.databases().paths
        return probes.schema(path).version if known else None
    except (CouldNotLook, FileNotFoundError):
        return None
