"""Check that no configured platform is broken in the installed release."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check


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
                title=f"Hermes {installed.version} cannot start {one.platform}, which is set up",
                subject=one.platform,
                detail=(
                    "The gateway calls its adapter with a word that this one does not know. No "
                    f"setting helps. {one.cure}"
                ),
                evidence=(Evidence(one.file, f"does not take {one.lacks}"),),
                data={"platform": one.platform},
            )
