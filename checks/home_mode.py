"""Check that other users cannot enter the home and that the gateway runs as its owner."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, snapshot, text

_INSIDE = ("state.db", "logs/gateway.log", "logs/agent.log", "kanban.db")
_MEANT = ("HERMES_HOME_MODE", "HERMES_SKIP_CHMOD", "HERMES_CONTAINER")


@check(id="home-mode", group="secrets", codes=["PERM-SECRETS", "PERM-OWNER"])
def home_mode(probes: Probes) -> Iterator[Finding]:
    """Is the home closed to other users, and that of the user as whom the gateway runs?"""
    home = snapshot(probes.home.path)
    if home.kind != "directory":
        raise Skip("the home is no folder of its own")
    yield from _mode(probes, home.mode)
    user = probes.gateway_user()
    if probes.gateways() and user.uid != home.uid:
        yield Finding(
            code="PERM-OWNER",
            severity=Severity.INFO,
            title="the gateway does not run as the owner of its home",
            subject="the home",
            detail=(
                "What it writes belongs to the user as whom it runs, and is closed to the owner of "
                "the home: run it as that owner, with `User=` in its unit."
            ),
            evidence=(
                Evidence(str(probes.home.path), f"owner {home.uid}"),
                Evidence(f"process {probes.gateways()[0].pid}", f"runs as {user.uid}"),
            ),
        )


def _mode(probes: Probes, mode: int) -> Iterator[Finding]:
    others, group = probes.open_to()
    bit = 0o004 if others else 0o040
    if not others and not group:
        return
    files = [name for name in _INSIDE if snapshot(probes.home / name).mode & bit]
    if not files or any(probes.settings().value(name) for name in _MEANT):
        return
    who = "every user of this machine" if others else "the group of the home"
    yield Finding(
        code="PERM-SECRETS",
        severity=Severity.WARNING if others else Severity.INFO,
        title=text("{who} can read conversations and logs", who=who),
        subject="the home",
        detail=(
            text(
                "Hermes makes its files readable and relies on a home that only "
                "its owner may enter: chmod 700 {home_path}",
                home_path=probes.home.path,
            )
        ),
        evidence=(
            Evidence(str(probes.home.path), f"mode {mode:04o}"),
            Evidence(files[0], "can be read by them"),
        ),
    )
