"""Check that the root home's gateway serves the profiles that its state file lists."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text

_STATE = "gateway_state.json"
_BY_SETTINGS = (0, 20, 5)
"""Up to this release, Hermes goes by the settings of the root home, not by the list."""


@check(id="served-profiles", group="gateway", codes=["GW-EXIT78"], needs="profile")
def served_profiles(probes: Probes) -> Iterator[Finding]:
    """May this profile start its own gateway?"""
    listed = probes.gateway.listed_by()
    if listed is None:
        raise Skip("the gateway of the root home does not list this profile")
    installation = probes.hermes.installation()
    if not listed.stale or (installation and installation.release <= _BY_SETTINGS):
        return
    root = probes.home.path.parent.parent
    yield Finding(
        code="GW-EXIT78",
        severity=Severity.ERROR,
        title=text("Hermes refuses a gateway for profile {name}", name=probes.home.profile),
        subject="gateway",
        detail=(
            "Nobody gets an answer here. The root home still lists the profile as served, but its "
            "gateway serves only itself."
        ),
        evidence=(
            Evidence(str(root / _STATE), text("served_profiles: {name}", name=probes.home.profile)),
            Evidence(str(root / "config.yaml"), "multiplex_profiles: false"),
        ),
        next=(
            "Stop the gateway of the root home, move its gateway_state.json away, then start both "
            "gateways."
        ),
    )
