"""Check that a user service keeps running after logout and that its service manager runs."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text


@check(id="service-login", group="supervision", codes=["GW-LINGER", "GW-NO-USER-BUS"])
def service_login(probes: Probes) -> Iterator[Finding]:
    """Does the user's service manager run, also when nobody is logged in?"""
    found = probes.supervision()
    own = [unit for unit in found.units if unit.kind == "systemd-user"]
    if not own:
        raise Skip("no user service is set up to run the gateway")
    unit = own[0]
    at_work = unit.state in ("active", "activating")
    if found.linger is False and (unit.enabled or at_work):
        yield Finding(
            code="GW-LINGER",
            severity=Severity.WARNING,
            title=text(
                "the gateway ends when {user} logs out, and does not start at boot", user=unit.user
            ),
            subject=unit.name,
            detail=(
                text(
                    "User services live as long as a login unless the user lingers. "
                    "`sudo loginctl enable-linger {user}` changes that for good.",
                    user=unit.user,
                )
            ),
            evidence=(Evidence(f"/var/lib/systemd/linger/{unit.user}", "is not there"),),
            fix="enable-linger",
            data={"user": unit.user, "unit": unit},
        )
    if unit.settings.get("Manager") == "absent" and found.booted:
        runs = _runs(probes)
        yield Finding(
            code="GW-NO-USER-BUS",
            severity=Severity.WARNING if runs else Severity.ERROR,
            title=text(
                "the service manager of {user} does not run, so {unit} cannot",
                user=unit.user,
                unit=unit.name,
            ),
            subject=unit.name,
            detail=(
                text(
                    "`systemctl --user` says `Failed to connect to bus`. It comes up "
                    "with a login (ssh, not `su`), or at boot for a user that lingers; "
                    "root starts it at once with `systemctl start "
                    "user@{manager}.service`.",
                    manager=unit.manager,
                )
            ),
            evidence=(Evidence(f"/run/user/{unit.manager}", "no bus, no systemd/private"),),
            data={"user": unit.user, "unit": unit},
        )


def _runs(probes: Probes) -> bool:
    try:
        return bool(probes.gateways())
    except CouldNotLook:
        return True
