"""Check that config.yaml parses; otherwise Hermes silently runs on its defaults."""

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
    clock,
    sentences,
    text,
)


@check(id="config-yaml", group="configuration", codes=["CFG-YAML"])
def config_yaml(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Is config.yaml valid YAML?"""
    config = probes.config()
    if config is None:
        raise Skip("no config.yaml; Hermes runs on its defaults")
    fault = config.fault
    if fault is None:
        return
    from hermes_doctor.api import UNFOLDS, yaml_mistake

    copies, searched = [], True
    try:
        copies = probes.config_copies()
    except CouldNotLook as why:
        searched = False
        yield CouldNotLook(text("older copies of config.yaml: {reason}", reason=why))
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
        made = text("valid copy from {time}", time=clock(copies[0].modified))
        evidence.append(Evidence(copies[0].label, made))
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
