"""Create the settings that a gateway sees from the text of the files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes_doctor.core.system.files import ABSENT
from hermes_doctor.hermes.knowledge.releases import Release
from hermes_doctor.hermes.settings import env_file as env_file_module
from hermes_doctor.hermes.settings.document import Document
from hermes_doctor.hermes.settings.env_file import EnvFile
from hermes_doctor.hermes.settings.inputs import SettingInputs

NEWEST = (0, 19, 0)


def env_file(text: str | bytes) -> EnvFile:
    """Return a .env with these bytes."""
    data = text.encode() if isinstance(text, str) else text
    return EnvFile(Path(".env"), data, ABSENT)


def world(
    config: str = "",
    env: str = "",
    store: Mapping[str, Any] | None = None,
    version: tuple[int, ...] = NEWEST,
    started_with: Mapping[str, str] | None = None,
) -> SettingInputs:
    """Return what a gateway of a release sees."""
    release = Release(version)
    before = started_with or {}
    return SettingInputs(
        release=release,
        document=Document(config.encode()),
        readings=env_file_module.parse_env(env_file(env), release, before),
        started_with=before,
        store=store or {},
        now=2_000_000_000.0,
    )
