"""Check that no configured platform is broken in the installed release."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text


@check(
    id="release-breaks",
    group="platforms",
    codes=["QQ-IS-RECONNECT"],
    by_release=True,
    needs="hermes",
)
def release_breaks(probes: Probes) -> Iterator[Finding]:
    """Can the installed Hermes start every configured platform?"""
    installed = probes.installation()
    if installed is None:
        raise Skip("no Hermes installation found")
    labels = {one.name: one.label for one in probes.platforms()}
    for one in probes.breaks():
        if not one.packed:  # platform-adapters reports files missing from the package
            yield Finding(
                code="QQ-IS-RECONNECT",
                severity=Severity.ERROR,
                title=text(
                    "Hermes {version} cannot start {platform}",
                    version=installed.version,
                    platform=labels.get(one.platform, one.platform),
                ),
                subject=one.platform,
                detail=(
                    "Nobody on this platform gets an answer. The code of this release has a bug "
                    "that no setting avoids."
                ),
                evidence=(
                    Evidence(
                        one.file, text("the argument {argument} is missing", argument=one.lacks)
                    ),
                ),
                next=text("Update Hermes to {release} or newer.", release=one.cured_by)
                if one.cured_by
                else "Ask the Hermes project for a release that fixes it.",
                data={"platform": one.platform},
            )
