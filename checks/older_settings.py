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
    """Is every setting in the place where this release looks first?"""
    for one in older(probes.resolved()):
        yield Finding(
            code="CFG-DEPRECATED",
            severity=Severity.INFO,
            title=(
                text("{name} in {file} ", name=one.name, file=one.source.file)
                + (
                    text("is beaten by {replacement}", replacement=one.replacement)
                    if one.overridden
                    else "is an older way to say it"
                )
            ),
            subject=one.name,
            detail=(
                text(
                    "{replacement} counts; take the line out, so that nobody edits it in vain.",
                    replacement=one.replacement,
                )
                if one.overridden
                else text(
                    "It still counts. Move it to {replacement} before a release drops it.",
                    replacement=one.replacement,
                )
            ),
            evidence=(Evidence(one.source.place, one.name),),
        )
