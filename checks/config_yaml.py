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
    text,
    yaml_mistake,
)


@check(id="config-yaml", group="configuration", codes=["CFG-YAML"])
def config_yaml(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does config.yaml parse to settings?"""
    config = probes.config()
    if config is None:
        raise Skip("there is no config.yaml; Hermes runs on its defaults")
    fault = config.fault
    if fault is None:
        return
    where = "config.yaml" + (f":{fault.line}" if fault.line else "")
    column = f", column {fault.column}" if fault.column else ""
    place = f"line {fault.line}{column}: " if fault.line else ""
    copies = []
    found = " No older copy that parses was found."
    try:
        copies = probes.config_copies()
    except CouldNotLook as why:
        found = " Older copies could not be looked at."
        yield CouldNotLook(text("older copies of config.yaml: {why}", why=why))
    if copies:
        found = (
            f" The newest copy that parses is {copies[0].label}, of "
            f"{copies[0].modified:%Y-%m-%d %H:%M} UTC."
        )
    cause = yaml_mistake(config)
    seen = [Evidence(where, f"{place}{fault.what}")]
    if cause and cause.shown:
        seen.append(Evidence(f"config.yaml:{cause.line}", cause.shown))
    mendable = cause is not None and cause.repaired is not None
    yield Finding(
        code="CFG-YAML",
        severity=Severity.CRITICAL,
        title="config.yaml does not parse, so every setting in it is ignored",
        subject="config.yaml",
        detail=(
            text(
                "{cause_what}Hermes starts on its defaults instead: another model, "
                "no fallbacks, no platform settings. Do not run `hermes config "
                "set` now: it would write the defaults over the file.",
                cause_what=cause.what + " " if cause else "",
            )
            + found
        ),
        evidence=tuple(seen),
        since=_moment(config.snapshot.mtime_ns),
        fix="mend-yaml" if mendable else "restore-config" if copies else None,
    )


def _moment(ns: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(ns / 1e9, UTC)
    except (OverflowError, ValueError, OSError):
        return None
