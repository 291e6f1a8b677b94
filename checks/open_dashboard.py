"""Check that the dashboard is not open to the network without a password."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check

_ALWAYS_ASKS = (0, 18)
"""From this release on, the dashboard listens to the network only with a password."""


@check(id="open-dashboard", group="access", codes=["AUTHZ-DASHBOARD"], needs="hermes")
def open_dashboard(probes: Probes) -> Iterator[Finding]:
    """Is the dashboard protected from the network?"""
    found = probes.installation()
    if found is None or found.release >= _ALWAYS_ASKS:
        raise Skip("this Hermes always protects the dashboard with a password")
    for one in probes.open_dashboards():
        yield Finding(
            code="AUTHZ-DASHBOARD",
            severity=Severity.ERROR,
            title="the dashboard is open to the network without a password",
            subject="dashboard",
            detail="Everyone who can reach the port can read your keys and run commands.",
            evidence=(Evidence(f"process {one.pid}", f"--host {one.host} --insecure"),),
            next=(
                "Run `hermes dashboard --stop`, then start it without --host and --insecure and "
                "use an SSH tunnel."
            ),
        )
