"""Tell whether a home's Hermes is newer than the newest release that hermes-doctor knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_doctor.core.message import text
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.hermes.knowledge import data

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.probes.databases_view import DatabasesView
    from hermes_doctor.diagnosis.probes.hermes_view import HermesView
    from hermes_doctor.diagnosis.probes.settings_view import SettingsView

MOST = 10_000
"""No release will have a higher version number; a higher one is damage."""


def reason(hermes: HermesView, settings: SettingsView, databases: DatabasesView) -> str | None:
    """Return why knowledge about releases does not apply to this home; None if it does.

    The files that Hermes wrote count too, because the Hermes that uses a home may be in a container
    or not the one that was found here.
    """
    installed = hermes.installation()
    learned = data.learned_of(installed.release) if installed else None
    if installed is not None and installed.release > data.NEWEST and learned is None:
        return text("Hermes {version} is newer than hermes-doctor knows", version=installed.version)
    config, schema = (learned.config, learned.schema) if learned else (0, 0)
    if _beyond(_config_version(settings), max(config, data.NEWEST_CONFIG)):
        return "config.yaml is from a newer Hermes than hermes-doctor knows"
    if _beyond(_schema_version(databases), max(schema, data.NEWEST_SCHEMA)):
        return "state.db is from a newer Hermes than hermes-doctor knows"
    return None


def can_learn(hermes: HermesView) -> bool:
    """Whether `hermes-doctor learn` can ask the Hermes of this home for what is unknown.

    A release in the files of this tool has nothing to add, but a checkout may differ from it.
    """
    from hermes_doctor.hermes.installation.details import read_details

    installation = hermes.installation()
    return installation is not None and (
        installation.version not in data.shipped_releases()
        or read_details(installation).revision is not None
    )


def _beyond(version: Any, newest: int) -> bool:
    return type(version) is int and newest < version <= MOST


def _config_version(settings: SettingsView) -> Any:
    try:
        document = settings.resolved().world.document
    except CouldNotLook:
        return None
    return document.values.get("_config_version") if document.values else None


def _schema_version(databases: DatabasesView) -> Any:
    path = databases.home / "state.db"
    try:
        known = path in databases.files().paths
        return databases.schema(path).version if known else None
    except (CouldNotLook, FileNotFoundError):
        return None
