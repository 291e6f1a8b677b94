"""Correct config.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hermes_doctor.api import CannotFix, Finding, Probes, ReplaceFile, Safety, Step, fix, text
from hermes_doctor.api.edits import Assign, Drop, Put, Rename, Unset
from hermes_doctor.api.repairs import edit_config, edit_env, restart_if_running
from hermes_doctor.api.settings import (
    IgnoredSetting,
    ignored_settings,
    lookalikes,
    referenced_value,
    without_blanks,
    yaml_mistake,
)
from hermes_doctor.api.tools import clock


@fix(id="mend-yaml", codes=["CFG-YAML"], safety=Safety.CONFIRM)
def mend_yaml(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Correct the mistake in config.yaml so that it parses."""
    config = probes.settings.config()
    if config is None or config.fault is None:
        return
    cause = yaml_mistake(config)
    if cause is None or cause.repaired is None:
        raise CannotFix(
            "The mistake in config.yaml is of an unknown kind. Correct the line by hand."
        )
    yield ReplaceFile(
        config.path,
        cause.repaired,
        why=cause.repair,
        expect=config.snapshot,
        before=config.data,
    )


@fix(id="restore-config", codes=["CFG-YAML"], safety=Safety.CONFIRM)
def restore_config(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Restore the newest config.yaml that parses."""
    config, copies = probes.settings.config(), probes.settings.config_copies()
    if config is None or config.fault is None:
        return
    if not copies:
        raise CannotFix("No intact copy of config.yaml was found. Correct the line by hand.")
    newest = copies[0]
    yield ReplaceFile(
        config.path,
        newest.data,
        why=text(
            "restore {copy} of {time}, the newest that parses",
            copy=newest.label,
            time=clock(newest.modified),
        ),
        expect=config.snapshot,
        before=config.data,
    )


@fix(id="straighten-config", codes=["CFG-LOOKALIKE"], safety=Safety.CONFIRM)
def straighten_config(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Replace lookalike spaces and quotes in config.yaml."""
    config = probes.settings.config()
    if config is None or config.fault:
        return
    for lookalike in lookalikes(probes.settings.resolved().world.document):
        if lookalike.path != finding.data["path"]:
            continue
        if not lookalike.blank:
            yield from edit_config(
                probes, "remove the curly quotes", Put(lookalike.path, lookalike.value)
            )
        else:
            made = without_blanks(config.data)
            if made is None:
                raise CannotFix(
                    "With plain spaces config.yaml would not parse. Correct it by hand."
                )
            why = "indent it with plain spaces"
            yield ReplaceFile(config.path, made, why, config.snapshot, before=config.data)
        yield from restart_if_running(probes, "platform")
        return


_READ_AT_EVERY_MESSAGE = ("model", "providers", "custom_providers")


@fix(
    id="rename-key",
    codes=["CFG-UNKNOWN-KEY", "CFG-IGNORED", "CFG-ALLOWLIST-KEY"],
    safety=Safety.CONFIRM,
)
def rename_key(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Rename the key in config.yaml; keep its value."""
    path, new = finding.data["path"], finding.data["new"]
    yield from edit_config(probes, f"rename it to {new}, which Hermes reads", Rename(path, new))
    yield from restart_if_running(
        probes, "model" if path[0] in _READ_AT_EVERY_MESSAGE else "platform"
    )


@fix(id="reshape-platforms", codes=["CFG-IGNORED"], safety=Safety.CONFIRM)
def reshape_platforms(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Write platforms in the form that Hermes reads."""
    config = probes.settings.config()
    written = (config.values if config else None) or {}
    for ignored_setting in ignored_settings(probes.settings.resolved()):
        if ignored_setting.path == finding.data["path"]:
            edit = _edit(ignored_setting, written.get("platforms"))
            yield from edit_config(probes, "use the form that Hermes reads", edit)
            yield from restart_if_running(probes, "platform")


def _edit(setting: IgnoredSetting, platforms: Any) -> Put:
    if setting.kind == "unstarted":
        return Put((*setting.path, "enabled"), True)
    if setting.kind == "switch":
        return Put(setting.path, {"enabled": setting.value})
    listed = platforms if isinstance(platforms, list) else [platforms]
    made: dict[str, Any] = {}
    for item in listed:
        if isinstance(item, str):
            made[item.strip()] = {"enabled": True}
        elif isinstance(item, dict) and all(isinstance(block, dict) for block in item.values()):
            made |= {str(name): {"enabled": True} | block for name, block in item.items()}
        else:
            raise CannotFix(
                "{key} in config.yaml contains more than names of platforms. Correct it by hand.",
                key=setting.path[0],
            )
    return Put(setting.path, made)


@fix(id="move-token", codes=["CFG-IGNORED"], safety=Safety.CONFIRM)
def move_token(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Move the token to where Hermes reads it."""
    resolved = probes.settings.resolved()
    for ignored_setting in ignored_settings(resolved):
        if ignored_setting.path != finding.data["path"]:
            continue
        token = (
            referenced_value(resolved, ignored_setting.value)
            if "${" in ignored_setting.value
            else ignored_setting.value
        )
        if ignored_setting.harm and not token:
            raise CannotFix(
                "The variable with the token is not set. Write the token into .env yourself."
            )
        if not ignored_setting.harm:
            yield from edit_config(
                probes, "remove the token that Hermes ignores", Drop(ignored_setting.path)
            )
        elif ignored_setting.instead:
            yield from edit_env(
                probes,
                "write the token where Hermes reads it",
                Assign(ignored_setting.instead, str(token)),
            )
            yield from edit_config(
                probes, "remove the token that Hermes ignores", Drop(ignored_setting.path)
            )
        else:
            block = ("platforms", ignored_setting.platform)
            moved = (Put((*block, "enabled"), True), Put((*block, "token"), str(token)))
            yield from edit_config(
                probes,
                "move the token to where Hermes reads it",
                *moved,
                Drop(ignored_setting.path),
            )
        yield from restart_if_running(probes, "platform")


@fix(id="move-port", codes=["PLATFORM-PORT-CLASH"], safety=Safety.CONFIRM)
def move_port(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Move one of the two platforms to a free port."""
    variable, port = finding.data["variable"], finding.data["port"]
    why = f"use port {port}, which is free"
    if variable:
        yield from edit_env(probes, why, Assign(variable, str(port)))
    else:
        yield from edit_config(probes, why, Put(finding.data["path"], port))
    yield from restart_if_running(probes, "platform")


@fix(id="mend-session-reset", codes=["CFG-SESSION-RESET"], safety=Safety.CONFIRM)
def mend_session_reset(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Correct the times at which conversations are reset."""
    if "variable" in finding.data:
        name = finding.data["variable"]
        yield from edit_env(probes, f"remove {name}, so that the default applies", Unset(name))
    else:
        path, value = finding.data["path"], finding.data["value"]
        yield from edit_config(probes, f"set {path[-1]} to {value}", Put(path, value))
    yield from restart_if_running(probes, "platform")
