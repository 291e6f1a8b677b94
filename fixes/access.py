"""Let users in, and set who may write to the bot."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, Step, fix
from hermes_doctor.api.edits import Assign, Drop, Put, Unset
from hermes_doctor.api.repairs import (
    admit_user,
    approve_pairing,
    edit_config,
    edit_env,
    mirror_user,
    move_pairing,
    restart_if_running,
    unlock_pairing,
)
from hermes_doctor.api.settings import ignored_allowlists


@fix(id="add-allowed-user", codes=["AUTHZ-UNAUTHORIZED"], safety=Safety.CONFIRM, personal=True)
def add_allowed_user(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Add the refused user to the allowlist."""
    user = finding.data.get("user")
    if not isinstance(user, str):
        raise CannotFix("The log contains no valid user id. Add the id to the allowlist yourself.")
    yield from admit_user(probes, finding.data["platform"], user)


@fix(id="approve-pairing", codes=["PAIRING-WAITING"], safety=Safety.CONFIRM, personal=True)
def approve_waiting(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Approve the user who waits to be paired."""
    platform, user = finding.data["platform"], finding.data["user"]
    yield from approve_pairing(probes, platform, user, finding.data["entry"])
    yield from mirror_user(probes, platform, user)


@fix(id="clear-lockout", codes=["PAIRING-LOCKOUT"], safety=Safety.CONFIRM)
def clear_lockout(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Allow pairing again after too many wrong codes."""
    yield from unlock_pairing(probes, finding.data["platform"])


@fix(id="merge-approvals", codes=["PAIRING-ASTRAY"], safety=Safety.CONFIRM, personal=True)
def merge_approvals(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Move the approved user to where the gateway looks."""
    yield from move_pairing(probes, finding.data["platform"], finding.data["user"])


@fix(id="move-list", codes=["CFG-ALLOWLIST-KEY"], safety=Safety.CONFIRM)
def move_list(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Move the allowlist from config.yaml to .env."""
    resolved = probes.settings.resolved()
    for ignored_allowlist in ignored_allowlists(resolved):
        if ignored_allowlist.path == finding.data["path"] and ignored_allowlist.variable:
            before = [
                word.strip()
                for word in resolved.world.getenv(ignored_allowlist.variable).split(",")
            ]
            users = ",".join(word for word in (*before, *ignored_allowlist.users) if word)
            yield from edit_env(
                probes,
                "write the allowlist where Hermes reads it",
                Assign(ignored_allowlist.variable, users),
            )
            yield from edit_config(
                probes, "remove the allowlist that Hermes ignores", Drop(ignored_allowlist.path)
            )
            yield from restart_if_running(probes, "access")


@fix(id="set-policy", codes=["AUTHZ-OPEN-REFUSE", "PLATFORM-POLICY"], safety=Safety.CONFIRM)
def set_policy(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Correct the access policy of the platform."""
    value = finding.data["value"]
    why = f"set the policy to {value}" if value else "remove it, so that the default applies"
    if "path" in finding.data:
        yield from edit_config(probes, why, Put(finding.data["path"], value))
    else:
        name = finding.data["variable"]
        yield from edit_env(probes, why, Assign(name, value) if value else Unset(name))
    yield from restart_if_running(probes, "platform")
