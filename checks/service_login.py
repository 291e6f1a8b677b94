"""Check that a user service keeps running after logout and that its service manager runs."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text


@check(
    id="service-login", group="supervision", codes=["GW-LINGER", "GW-NO-USER-BUS"], needs="service"
)
def service_login(probes: Probes) -> Iterator[Finding]:
    """Do the user's services run without a login?"""
    found = probes.supervision()
    own = [unit for unit in found.units if unit.kind == "systemd-user"]
    if not own:
        raise Skip("no systemd user service for the gateway")
    unit = own[0]
    at_work = unit.state in ("active", "activating")
    if found.linger is False and (unit.enabled or at_work):
        yield Finding(
            code="GW-LINGER",
            severity=Severity.WARNING,
            title=text("the gateway stops when {user} logs out", user=unit.user),
            subject=unit.name,
            detail=(
                "It does not start at boot either. systemd runs user services only during a login "
                "unless lingering is enabled."
            ),
            evidence=(Evidence(f"/var/lib/systemd/linger/{unit.user}", "does not exist"),),
            fix="enable-linger",
            data={"user": unit.user, "unit": unit},
        )
    if unit.settings.get("Manager") == "absent" and found.booted:
        runs = _runs(probes)
        yield Finding(
            code="GW-NO-USER-BUS",
            severity=Severity.WARNING if runs else Severity.ERROR,
            title=text("systemd does not run for the user {user}", user=unit.user),
            subject=unit.name,
            detail=(
                text("{unit} cannot start the gateway again when it stops.", unit=unit.name)
                if runs
                else text(
                    "{unit} cannot start the gateway, so nobody gets an answer. "
                    "`systemctl --user` fails with `Failed to connect to bus`.",
                    unit=unit.name,
                )
            ),
            evidence=(Evidence(f"/run/user/{unit.manager}", "no bus, no systemd/private"),),
            next=text(
                "Log in as {user} with ssh (not `su`), or run `systemctl start "
                "user@{uid}.service` as root.",
                user=unit.user,
                uid=unit.manager,
            ),
            data={"user": unit.user, "unit": unit},
        )


def _runs(probes: Probes) -> bool:
    try:
        return bool(probes.gateways())
    except CouldNotLook:
        return True
