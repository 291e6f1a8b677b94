"""Settings that still count and have a better place by now."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, older_settings as older


@check(id="older-settings", group="configuration", codes=["CFG-DEPRECATED"], by_release=True)
def older_settings(probes: Probes) -> Iterator[Finding]:
    """Is every setting in the place where this release looks first?"""
    for one in older(probes.resolved()):
        yield Finding(
            code="CFG-DEPRECATED",
            severity=Severity.INFO,
            title=(
                f"{one.name} in {one.source.file} "
                + (
                    f"is beaten by {one.replacement}"
                    if one.overridden
                    else "is an older way to say it"
                )
            ),
            subject=one.name,
            detail=(
                f"{one.replacement} counts; take the line out, so that nobody edits it in vain."
                if one.overridden
                else f"It still counts. Move it to {one.replacement} before a release drops it."
            ),
            evidence=(Evidence(one.source.place, one.name),),
        )
