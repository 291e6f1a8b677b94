"""Platforms that this very release cannot start, and the release that can."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check


@check(id="release-breaks", group="supervision", codes=["QQ-IS-RECONNECT", "PLUGIN-NOT-REGISTERED"])
def release_breaks(probes: Probes) -> Iterator[Finding]:
    """Can this release start every platform that is set up?"""
    installed = probes.installation()
    if installed is None:
        raise Skip("no Hermes was found")
    for one in probes.breaks():
        cure = (
            f"Update Hermes to {one.cured_by} or newer."
            if one.cured_by
            else "No release that is known here cures it."
        )
        yield Finding(
            code="PLUGIN-NOT-REGISTERED" if one.packed else "QQ-IS-RECONNECT",
            severity=Severity.ERROR,
            title=f"Hermes {installed.version} cannot start {one.platform}, which is set up",
            subject=one.platform,
            detail=(
                "Its plugin was left out of the package in part, so Hermes does not find it. "
                if one.packed
                else "The gateway calls its adapter with a word that this one does not know. "
            )
            + f"No setting helps. {cure}",
            evidence=(
                Evidence(one.file, "is missing" if one.packed else f"does not take {one.lacks}"),
            ),
            data={"platform": one.platform},
        )
