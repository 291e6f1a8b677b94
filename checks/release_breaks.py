"""Check that no configured platform is broken in the installed release."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text


@check(id="release-breaks", group="platforms", codes=["QQ-IS-RECONNECT"], by_release=True)
def release_breaks(probes: Probes) -> Iterator[Finding]:
    """Can this release start every platform that is set up?"""
    installed = probes.installation()
    if installed is None:
        raise Skip("no Hermes was found")
    for one in probes.breaks():
        if not one.packed:  # platform-adapters reports files missing from the package
            yield Finding(
                code="QQ-IS-RECONNECT",
                severity=Severity.ERROR,
                title=text(
                    "Hermes {version} cannot start {platform}, which is set up",
                    version=installed.version,
                    platform=one.platform,
                ),
                subject=one.platform,
                detail=(
                    text(
                        "The gateway calls its adapter with a word that this one does not "
                        "know. No setting helps. {cure}",
                        cure=one.cure,
                    )
                ),
                evidence=(Evidence(one.file, f"does not take {one.lacks}"),),
                data={"platform": one.platform},
            )
