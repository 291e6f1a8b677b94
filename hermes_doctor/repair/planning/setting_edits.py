"""Plan edits of a home's config.yaml and .env, and the gateway restart that they need."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.core.model import CannotFix, Finding
from hermes_doctor.core.system.files import Snapshot, snapshot
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.step import Step
from hermes_doctor.hermes.knowledge.releases import Release
from hermes_doctor.hermes.settings import config_yaml, env_file
from hermes_doctor.hermes.settings.edits import (
    ConfigEdit,
    Drop,
    Edit,
    EnvEdit,
    Put,
    Rename,
    Unset,
)
from hermes_doctor.repair.gateway import control
from hermes_doctor.repair.steps.files import ReplaceFile, ReplaceSpan, changed_span
from hermes_doctor.repair.steps.gateway import GatewayStep

MODEL, KEY, VARIABLE, FALLBACK, PLATFORM, ACCESS, GONE = (
    "model",
    "key",
    "variable",
    "fallback",
    "platform",
    "access",
    "gone",
)
_READ_AT_EVERY_MESSAGE: dict[str, tuple[int, ...] | None] = {
    MODEL: (0,),
    KEY: (0,),
    VARIABLE: (0, 18, 1),
    FALLBACK: (0, 19),
    PLATFORM: None,
    ACCESS: None,
    GONE: None,
}
"""The first release in which a running gateway notices a change by itself; None if none does."""


def edit_config(probes: Probes, why: str, *edits: ConfigEdit) -> Iterator[Step]:
    """Make one step that applies these edits to config.yaml, or none if nothing changes."""
    from hermes_doctor.hermes.settings import edit_yaml

    refuse_managed(probes)
    config = probes.settings.config()
    before = config.data if config else b""
    after = edit_yaml.apply_edits(before, edits)
    path = probes.home / config_yaml.NAME
    taken = config.snapshot if config else snapshot(path)
    yield from _step(path, before, after, why, taken)


def edit_env(probes: Probes, why: str, *edits: EnvEdit) -> Iterator[Step]:
    """Make one step that applies these edits to .env, or none if nothing changes."""
    from hermes_doctor.hermes.settings import edit_env

    refuse_managed(probes)
    env = probes.settings.env()
    if env is not None and env.mark is not None:
        raise CannotFix(".env is not plain UTF-8. Repair that first.")
    path = probes.home / env_file.NAME
    taken = env.snapshot if env else snapshot(path)
    release = _release(probes)

    def read(data: bytes) -> list[dict[str, str]]:
        readings = env_file.parse_env(env_file.EnvFile(path, data, taken), release, {})
        return [
            {name: str(value) for name, value in parsed_env.values.items()}
            for parsed_env in (readings.dotenv, readings.own)
        ]

    before = env.data if env else b""
    yield from _step(path, before, edit_env.apply_edits(before, edits, read), why, taken)


def restart_if_running(probes: Probes, *what: str) -> Iterator[Step]:
    """Make the restart step that a gateway needs to notice the change, if it runs or is to start.

    A gateway that we cannot restart keeps its old settings until its owner restarts it. The file
    is corrected anyway, and the next check reports that the settings are newer.
    """
    if not probes.gateway.running() and probes.health.next_start() is None:
        return
    release = _release(probes)
    late = [one for one in what if not _notices(release, one)]
    if late:
        with contextlib.suppress(CannotFix):
            why = _REASONS[late[0]]
            yield GatewayStep(control.gateway_control(probes), restart=True, why=why)


_REASONS = {
    VARIABLE: "it reads variables only when it starts",
    FALLBACK: "it reads the fallback providers only when it starts",
    PLATFORM: "it reads the settings of platforms only when it starts",
    ACCESS: "it reads allowlists only when it starts",
    GONE: "it keeps a removed variable until it starts again",
}


def _notices(release: Release, what: str) -> bool:
    since = _READ_AT_EVERY_MESSAGE[what]
    return since is not None and release.since(*since)


def refuse_managed(probes: Probes) -> None:
    """Refuse to edit a home that a package manager manages: it would overwrite the edit."""
    if probes.settings.is_managed():
        raise CannotFix(
            "This home is managed by a package manager (NixOS, Homebrew), which would undo the "
            "change. Change it there."
        )


def _release(probes: Probes) -> Release:
    installation = probes.hermes.installation()
    return Release(installation.release if installation else None)


def _step(path: Path, before: bytes, after: bytes, why: str, taken: Snapshot) -> Iterator[Step]:
    if after == before:
        return
    if taken.kind == "absent":
        yield ReplaceFile(path, after, why, taken)
        return
    start, end, new_end = changed_span(before, after)
    yield ReplaceSpan(path, before, start, end, after[start:new_end], why, taken)


def apply_finding_edits(probes: Probes, finding: Finding, why: str) -> Iterator[Step]:
    """Make steps for the finding's `edits` of config.yaml and .env, and the restart they need."""
    edits: tuple[Edit, ...] = finding.data.get("edits", ())
    if not edits:
        raise CannotFix("The files do not show the right value. Correct the setting by hand.")
    config = [edit for edit in edits if isinstance(edit, Put | Rename | Drop)]
    env = [edit for edit in edits if not isinstance(edit, Put | Rename | Drop)]
    steps: list[Step] = []
    if config:
        # Refuse to remove or rewrite a block with comments, because they would be lost.
        from hermes_doctor.hermes.settings import edit_yaml

        file = probes.settings.config()
        for change in config if file else ():
            whole = isinstance(change, Drop) or (
                isinstance(change, Put) and bool(isinstance(change.value, dict | list))
            )
            if file and whole and edit_yaml.holds_comments(file.data, change.path):
                raise CannotFix(
                    "{key} contains comments, which would be lost. Change it by hand.",
                    key=".".join(map(str, change.path)),
                )
        steps += edit_config(probes, why, *config)
    if env:
        steps += edit_env(probes, why, *env)
    if steps:
        yield from steps
        yield from restart_if_running(probes, *dict.fromkeys(map(_noticed, edits)))


def _noticed(edit: Edit) -> str:
    """What kind of change a gateway must notice for an edit."""
    if isinstance(edit, Unset):
        return GONE
    if not isinstance(edit, Put | Rename | Drop):
        return KEY
    if str(edit.path[0]).startswith("fallback"):
        return FALLBACK
    return VARIABLE if isinstance(edit, Put) and "${" in str(edit.value) else MODEL
