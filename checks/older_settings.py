"""Check for deprecated settings that should be moved to their newer place."""

from collections.abc import Iterator

from hermes_doctor.api import (
    Evidence,
    Finding,
    Probes,
    Severity,
    check,
    older_settings as older,
    text,
)


@check(id="older-settings", group="configuration", codes=["CFG-DEPRECATED"], by_release=True)
def older_settings(probes: Probes) -> Iterator[Finding]:
    """Are all settings up to date?"""
    for one in older(probes.resolved()):
        yield Finding(
            code="CFG-DEPRECATED",
            severity=Severity.INFO,
            title=(
                text("{name} in {file} has no effect", name=one.name, file=one.source.file)
                if one.overridden
                else text("{name} in {file} is outdated", name=one.name, file=one.source.file)
            ),
            subject=one.name,
            detail=(
                text("{newer} overrides it.", newer=one.replacement)
                if one.overridden
                else "It still works, but a later release may drop it."
            ),
            evidence=(Evidence(one.source.place, one.name),),
            next="Delete the line."
            if one.overridden
            else text("Use {newer}.", newer=one.replacement),
        )
