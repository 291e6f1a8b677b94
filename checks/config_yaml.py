"""Check that config.yaml and gateway.json can be read, and that Hermes knows what they say."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    settings,
    text,
)
from hermes_doctor.api.providers import routes
from hermes_doctor.api.settings import deprecated_settings, display_path, misspelt_keys
from hermes_doctor.api.tools import clock, listed, sentences


@check(id="config-yaml", group="configuration", codes=["CFG-YAML"])
def config_yaml(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Is config.yaml valid YAML?"""
    config = probes.settings.config()
    if config is None:
        raise Skip("no config.yaml; Hermes runs on its defaults")
    fault = config.fault
    if fault is None:
        return
    from hermes_doctor.api.settings import UNFOLDS, yaml_mistake

    copies, searched = [], True
    try:
        copies = probes.settings.config_copies()
    except CouldNotLook as why:
        searched = False
        yield CouldNotLook("older copies of config.yaml: {reason}", reason=why)
    cause = yaml_mistake(config)
    error = (
        text("column {column}: {error}", column=fault.column, error=fault.what)
        if fault.column
        else fault.what
    )
    evidence = [Evidence(f"config.yaml:{fault.line}" if fault.line else "config.yaml", error)]
    if cause and cause.shown:
        evidence.append(Evidence(f"config.yaml:{cause.line}", cause.shown))
    if copies:
        message = text("valid copy from {time}", time=clock(copies[0].modified))
        evidence.append(Evidence(copies[0].label, message))
    repairable = cause is not None and cause.repaired is not None
    line = (cause and cause.line) or fault.line
    yield Finding(
        code="CFG-YAML",
        severity=Severity.CRITICAL,
        title=(
            text("config.yaml is a list, not settings")
            if fault.what.startswith("is a list at the top")
            else text("config.yaml contains no settings")
            if fault.what.endswith("not a mapping")
            else text("config.yaml line {line} is not valid YAML", line=line)
            if line
            else text("config.yaml is not valid YAML")
        ),
        subject="config.yaml",
        detail=sentences(
            "Hermes needs more memory than the machine has to read it."
            if fault == UNFOLDS
            else "Hermes ignores the whole file and runs on its defaults.",
            cause.what if cause else "",
        ),
        next=_next(repairable=repairable or bool(copies), searched=searched),
        evidence=tuple(evidence),
        since=_moment(config.snapshot.mtime_ns),
        fix="mend-yaml" if repairable else "restore-config" if copies else None,
    )


def _next(*, repairable: bool, searched: bool) -> str:
    """Return the operator's step; `searched` is false if older copies could not be read."""
    if repairable:
        return (
            "Do not run `hermes config set` before the repair: it replaces the file with defaults."
        )
    if searched:
        return (
            "Correct the file in an editor; no older copy is valid. Until then do not run `hermes "
            "config set`: it replaces the file with defaults."
        )
    return (
        "Correct the file in an editor. Until then do not run `hermes config set`: it replaces "
        "the file with defaults."
    )


def _moment(ns: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(ns / 1e9, UTC)
    except (OverflowError, ValueError, OSError):
        return None


@check(id="config-duplicates", group="configuration", codes=["CFG-DUP-KEY"])
def config_duplicates(probes: Probes) -> Iterator[Finding]:
    """Is every key in config.yaml set only once?"""
    document = probes.settings.resolved().world.document
    if document.fault or not document.values:
        raise Skip("config.yaml has no readable settings")
    for twice in document.duplicates:
        used = twice.lines[-1]
        yield Finding(
            code="CFG-DUP-KEY",
            severity=Severity.INFO if twice.same else Severity.WARNING,
            title=text(
                "{setting} is set {number} times in config.yaml",
                setting=display_path(twice.path),
                number=len(twice.lines),
            ),
            subject=display_path(twice.path),
            detail=(
                "All lines say the same, so nothing is broken."
                if twice.same
                else text(
                    "Hermes uses only line {line}. It ignores the others and everything that is "
                    "indented below them.",
                    line=used,
                )
            ),
            next=(
                "Keep one of the lines and delete the others."
                if twice.same
                else text("Move what you need to line {line}, and delete the others.", line=used)
            ),
            evidence=tuple(
                Evidence(f"config.yaml:{line}", "used" if line == used else "ignored")
                for line in twice.lines
            ),
        )


_MODEL = ("model", "default", "name", "base_url", "api_base", "api_key", "api")
"""The settings of the model that are sent to the provider."""


@check(id="config-lookalikes", group="configuration", codes=["CFG-LOOKALIKE"], by_release=True)
def config_lookalikes(probes: Probes) -> Iterator[Finding]:
    """Are spaces and quotes in config.yaml what they look like?"""
    resolved = probes.settings.resolved()
    document = resolved.world.document
    if document.fault or not document.values:
        raise Skip("config.yaml has no readable settings")
    if document.data.isascii():
        return
    from hermes_doctor.api.settings import lookalikes

    found = list(lookalikes(document))
    blanks = [one for one in found if one.blank]
    if blanks:
        yield Finding(
            code="CFG-LOOKALIKE",
            severity=Severity.WARNING,
            title="config.yaml is indented with characters that are not spaces",
            subject="config.yaml",
            detail=(
                "Hermes ignores the settings on these lines. Text copied from a web page often has "
                "such characters."
            ),
            evidence=tuple(
                Evidence(f"config.yaml:{blank.line}", "U+00A0 or similar before the name")
                for blank in blanks[:5]
            ),
            fix="straighten-config",
            data={"path": blanks[0].path},
        )
    for lookalike in found:
        if lookalike.blank or lookalike.path == (
            "model",
            "provider",
        ):  # reported as an unknown provider
            continue
        name = display_path(lookalike.path)
        main = lookalike.path[0] == "model" and lookalike.path[-1] in _MODEL
        yield Finding(
            code="CFG-LOOKALIKE",
            severity=routes(resolved)[0].severity if main else Severity.WARNING,
            title=text("curly quotes around {setting} in config.yaml", setting=name),
            subject=name,
            detail=(
                "Requests to the model fail, because Hermes sends the quotes as part of the value."
                if main
                else "Hermes reads the quotes as part of the value, so the setting is wrong."
            ),
            evidence=(Evidence(f"config.yaml:{lookalike.line}", "curly quotes"),),
            fix="straighten-config",
            data={"path": lookalike.path},
        )


@check(id="config-keys", group="configuration", codes=["CFG-UNKNOWN-KEY"], by_release=True)
def config_keys(probes: Probes) -> Iterator[Finding]:
    """Does Hermes know every key of config.yaml?"""
    world = probes.settings.resolved().world
    if world.document.fault or not world.raw:
        raise Skip("config.yaml has no readable settings")
    for slip in misspelt_keys(world.document, world.release):
        name = display_path(slip.path)
        yield Finding(
            code="CFG-UNKNOWN-KEY",
            severity=Severity.WARNING,
            title=text("unknown setting {setting} in config.yaml", setting=name),
            subject=name,
            detail=text('Hermes ignores it. Did you mean "{right}"?', right=slip.meant),
            evidence=(Evidence(f"config.yaml:{slip.line}", f"{slip.path[-1]}:"),),
            fix="rename-key",
            data={"path": slip.path, "new": slip.meant},
        )


@check(id="config-version", group="configuration", codes=["CFG-VERSION-OLD"], needs="hermes")
def config_version(probes: Probes) -> Iterator[Finding]:
    """Does the next update keep config.yaml and .env unchanged?"""
    installed = probes.hermes.installation()
    if installed is None:
        raise Skip("no installed Hermes was found")
    resolved = probes.settings.resolved()
    document = resolved.world.document
    if document.fault or not document.values:
        raise Skip("config.yaml has no readable settings")
    if (newer := probes.newer()) and installed.release > resolved.release:
        raise Skip(newer)  # the version that this release writes is unknown
    seen = settings.config_version(resolved)
    where = document.source("_config_version").place
    if seen.written is not None and seen.written > seen.newest:
        yield Finding(
            code="CFG-VERSION-OLD",
            severity=Severity.INFO,
            title=text(
                "config.yaml is from a newer Hermes than {version}",
                version=installed.version,
            ),
            subject="config.yaml",
            detail="The installed Hermes ignores settings that it does not know.",
            evidence=(_evidence(where, seen.written, seen.newest, installed.version),),
        )
    elif seen.losses:
        yield Finding(
            code="CFG-VERSION-OLD",
            severity=Severity.WARNING if seen.harms else Severity.INFO,
            title="the next update of Hermes changes config.yaml",
            subject="config.yaml",
            detail=(
                "`hermes update` and `hermes doctor --fix` also empty ANTHROPIC_TOKEN in .env. "
                "Without another key the bot then stops answering."
                if seen.harms
                else "`hermes update` and `hermes doctor --fix` make the changes in this list."
            ),
            next="Run `hermes-doctor backup create` before you update.",
            evidence=(
                *(Evidence("config.yaml", loss) for loss in seen.losses),
                _evidence(where, seen.written, seen.newest, installed.version),
            ),
        )


def _evidence(where: str, written: int | None, newest: int, installed: str) -> Evidence:
    if written is None:
        message = text(
            "_config_version is missing; Hermes {version} writes {newest}",
            version=installed,
            newest=newest,
        )
    else:
        message = text(
            "_config_version is {number}; Hermes {version} writes {newest}",
            number=written,
            version=installed,
            newest=newest,
        )
    return Evidence(where, message)


@check(id="older-settings", group="configuration", codes=["CFG-DEPRECATED"], by_release=True)
def older_settings(probes: Probes) -> Iterator[Finding]:
    """Are all settings up to date?"""
    for deprecated_setting in deprecated_settings(probes.settings.resolved()):
        yield Finding(
            code="CFG-DEPRECATED",
            severity=Severity.INFO,
            title=(
                text(
                    "{name} in {file} has no effect",
                    name=deprecated_setting.name,
                    file=deprecated_setting.source.file,
                )
                if deprecated_setting.overridden
                else text(
                    "{name} in {file} is outdated",
                    name=deprecated_setting.name,
                    file=deprecated_setting.source.file,
                )
            ),
            subject=deprecated_setting.name,
            detail=(
                text("{newer} overrides it.", newer=deprecated_setting.replacement)
                if deprecated_setting.overridden
                else "It still works, but a later release may drop it."
            ),
            evidence=(Evidence(deprecated_setting.source.place, deprecated_setting.name),),
            next="Delete the line."
            if deprecated_setting.overridden
            else text("Use {newer}.", newer=deprecated_setting.replacement),
        )


_RENAMED = {"default_reset_policy": "session_reset"}
"""Keys of gateway.json that have another name in config.yaml."""
_FORGIVING = (0, 19)
"""The first release that ignores a file that holds a list; earlier ones fail to start."""


@check(
    id="gateway-json",
    group="configuration",
    codes=["CFG-GATEWAY-JSON"],
    by_release=True,
    needs="gateway.json",
)
def gateway_json(probes: Probes) -> Iterator[Finding]:
    """Are all gateway settings in config.yaml?"""
    old = probes.settings.gateway_json()
    assert old is not None
    if old.values is None:
        installed = probes.hermes.installation()
        release = installed.release if installed else None
        fatal = not old.mapping and release is not None and release < _FORGIVING
        yield Finding(
            code="CFG-GATEWAY-JSON",
            severity=Severity.CRITICAL if fatal else Severity.WARNING,
            title=(
                "gateway.json is not a mapping, so the gateway cannot start"
                if fatal
                else "gateway.json cannot be read"
            ),
            subject="gateway.json",
            detail=(
                "This release does not start until the file is gone or correct."
                if fatal
                else "Hermes ignores every setting in it."
            ),
            evidence=(
                Evidence("gateway.json", "not valid JSON" if old.mapping else "not a mapping"),
            ),
            next="Move what you need from gateway.json to config.yaml, then delete gateway.json.",
        )
        return
    config = probes.settings.config()
    written = (config.values if config else None) or {}
    extra = [key for key in old.values if _RENAMED.get(key, key) not in written]
    platforms = old.values.get("platforms")
    if "platforms" in written and isinstance(platforms, dict):
        mine = written["platforms"] if isinstance(written["platforms"], dict) else {}
        extra += [f"platforms.{name}" for name in platforms if name not in mine]
    if not extra:
        return
    names = listed([display_path((key,)) for key in extra])
    yield Finding(
        code="CFG-GATEWAY-JSON",
        severity=Severity.INFO,
        title="an old gateway.json still sets what config.yaml does not",
        subject="gateway.json",
        detail="Hermes reads gateway.json first; config.yaml overrides it.",
        evidence=(Evidence("gateway.json", f"only here: {names}"),),
        next="Move these settings to config.yaml, then delete gateway.json.",
    )
