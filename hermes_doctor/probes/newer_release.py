"""Tell whether a home's Hermes is newer than the newest release that hermes-doctor knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_doctor.knowledge.data import NEWEST, NEWEST_CONFIG, NEWEST_SCHEMA
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
    if installed is not None and installed.release > NEWEST:
        return text("Hermes {version} is newer than hermes-doctor knows", version=installed.version)
    if _beyond(_config_version(probes), NEWEST_CONFIG):
        return "config.yaml is from a newer Hermes than hermes-doctor knows"
    if _beyond(_schema_version(probes), NEWEST_SCHEMA):
        return "state.db is from a newer Hermes than hermes-doctor knows"
    return None


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
