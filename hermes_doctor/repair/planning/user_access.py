"""Plan who may write to the bot: allowlists, and users who are or wait to be paired."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hermes_doctor.core.message import count, text
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.redaction import clean, redact_log_text
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.step import Step
from hermes_doctor.hermes.settings.admission import (
    PlatformAdmission,
    is_id,
    normalise_id,
    split_ids,
)
from hermes_doctor.hermes.settings.document import CONFIG, ENV, Text
from hermes_doctor.hermes.settings.edits import Assign, Put
from hermes_doctor.hermes.settings.inputs import section
from hermes_doctor.hermes.settings.platforms import GLOBAL_USERS
from hermes_doctor.hermes.stores import pairing
from hermes_doctor.hermes.stores.pairing import PairingFile
from hermes_doctor.repair.planning.setting_edits import (
    ACCESS,
    edit_config,
    edit_env,
    refuse_managed,
    restart_if_running,
)
from hermes_doctor.repair.steps.files import ReplaceFile, SetMode

_MIRRORS = (0, 18)
"""Since this release pairing also adds the id to the allowlist, if there is one."""


def admit_user(probes: Probes, platform: str, user: str) -> Iterator[Step]:
    """Add a user whom the platform refused to its allowlist."""
    if not is_id(platform, user):
        raise CannotFix(
            "This is not a valid id of {platform}. Add the right id to the allowlist yourself.",
            platform=platform,
        )
    if not any(
        (refusal.platform, refusal.user) == (platform, user) for refusal in probes.logs.refusals()
    ):
        raise CannotFix("The logs no longer show that this user was refused. Add the id yourself.")
    door = _door(probes, platform)
    if door is None:
        raise CannotFix(
            "{platform} is not configured or does not check its users. Nothing to do.",
            platform=platform,
        )
    if door.admits(user):
        return
    why = text("allow {user} on {platform}", user=user, platform=door.label)
    own = door.own
    if own is None and door.policed is not None:
        raise CannotFix(
            "{platform} uses its own allowlist in config.yaml, and one in .env would replace "
            "it. Add the id to `allow_from` there.",
            platform=platform,
        )
    listed, variable = own, door.variable
    shared = next((one for one in door.lists if one.source.name == GLOBAL_USERS), None)
    if own is None and shared is not None:  # a first list of its own would replace the shared one
        listed, variable = shared, GLOBAL_USERS
        why = text("allow {user} on every platform, like all users on this list", user=user)
    if listed is None:
        if door.invites or probes.stores.pairing().approved.get(platform):
            raise CannotFix(
                "Users of {label} are approved by pairing, and an allowlist would refuse them. "
                "Run `hermes pairing approve {platform} CODE` with the user's code.",
                label=door.label,
                platform=platform,
            )
        only = text(
            "allow {user} on {platform}, and from now on only users on this allowlist",
            user=user,
            platform=door.label,
        )
        yield from edit_env(probes, only, Assign(door.variable, user))
    elif listed.source.kind == ENV:
        yield from edit_env(probes, why, Assign(variable, _joined(listed, user)))
    elif listed is own and own.source.kind == CONFIG:
        yield from edit_config(probes, why, _put(probes, own, user))
    else:
        raise CannotFix(
            "The service or container of the gateway sets {name}. Add ,{user} to it there.",
            name=variable,
            user=user,
        )
    yield from restart_if_running(probes, ACCESS)


def mirror_user(probes: Probes, platform: str, user: str) -> Iterator[Step]:
    """Add a paired user to the allowlist in .env, as newer releases do when they pair."""
    installation = probes.hermes.installation()
    door = _door(probes, platform)
    if (
        door is None
        or door.own is None
        or (installation is not None and installation.release < _MIRRORS)
    ):
        return
    id = normalise_id(platform, user, installation.release if installation else _MIRRORS)
    if door.own.source.kind == ENV and not {"*", id} & {*split_ids(door.own)}:
        why = text("add the approved user to the allowlist of {platform}", platform=door.label)
        yield from edit_env(probes, why, Assign(door.variable, _joined(door.own, id)))


def _door(probes: Probes, platform: str) -> PlatformAdmission | None:
    return next(
        (admission for admission in probes.settings.admissions() if admission.name == platform),
        None,
    )


def _joined(listed: Text, user: str) -> str:
    bare = listed.rstrip(", ")
    return f"{bare},{user}" if bare else user


def _put(probes: Probes, listed: Text, user: str) -> Put:
    """The edit that adds an id to a list in config.yaml, with the type of the other items."""
    path = tuple(listed.source.name.split("."))
    value: Any = section(probes.settings.resolved().world.raw, *path[:-1]).get(path[-1])
    if not isinstance(value, list):
        return Put(path, _joined(listed, user))
    numbers = value and all(isinstance(one, int) for one in value) and user.isdigit()
    return Put((*path, len(value)), int(user) if numbers else user)


_NEWEST = (99,)
_LONGEST = 200


def approve_pairing(probes: Probes, platform: str, user: str, entry: str) -> Iterator[Step]:
    """Approve one pending pairing request: add the user to the approved, remove the request."""
    refuse_managed(probes)
    if not is_id(platform, user):
        raise CannotFix(
            "This is not a valid id of {platform}. Approve the user with the code.",
            platform=platform,
        )
    if probes.gateway.runtime().served:
        raise CannotFix("One gateway serves several profiles. Approve the user with the code.")
    folder = probes.stores.pairing().folder
    waiting = pairing.read_pairing_file(pairing.pending_file(folder, platform))
    approved = _usable(pairing.approved_file(folder, platform))
    now = time.time()
    asked = waiting.values.get(entry)
    if not pairing.is_pending(asked, now) or asked is None or asked.get("user_id") != user:
        raise CannotFix("The request has expired. Ask the user to write to the bot again.")
    said = asked.get("user_name", "")
    shown = said if isinstance(said, str) else ""
    name = shown[:_LONGEST].encode("utf-8", "replace").decode()
    installation = probes.hermes.installation()
    id = normalise_id(platform, user, installation.release if installation else _NEWEST)
    others = {
        one: info
        for one, info in approved.values.items()
        if normalise_id(platform, one, _NEWEST) != normalise_id(platform, id, _NEWEST)
    }
    left = {
        one: info
        for one, info in waiting.values.items()
        if one != entry and pairing.is_pending(info, now)
    }
    let_in = {**others, id: {"user_name": name, "approved_at": now}}
    yield from _write(
        approved,
        let_in,
        text("approve {user} on {platform}", user=id, platform=platform),
        f"+ {id}",
    )
    gone = len(waiting.values) - len(left) - 1
    over = [f"- {count(gone, 'expired request')}"] if gone else []
    yield from _write(
        waiting,
        left,
        text("remove the request of {user}", user=id),
        f"- the request of {id}",
        *over,
    )


def unlock_pairing(probes: Probes, platform: str) -> Iterator[Step]:
    """Remove the lockout and failure count of a platform, so users can be paired again."""
    refuse_managed(probes)
    limits = _usable(probes.stores.pairing().folder / pairing.LIMITS)
    gone = {f"_lockout:{platform}", f"_failures:{platform}"}
    left = {name: value for name, value in limits.values.items() if name not in gone}
    if len(left) < len(limits.values):
        yield from _write(
            limits, left, text("allow pairing on {platform} again", platform=platform)
        )


def move_pairing(probes: Probes, platform: str, user: str) -> Iterator[Step]:
    """Move an approved user from the ignored pairing folder to the one that Hermes reads.

    Users that the read folder has are removed from the ignored one, so a user who is removed later
    is not found there again.
    """
    refuse_managed(probes)
    if not is_id(platform, user):
        raise CannotFix(
            "This is not a valid id of {platform}. Approve the user with a code.", platform=platform
        )
    store = probes.stores.pairing()
    here = _usable(pairing.approved_file(store.folder, platform))
    there = _usable(pairing.approved_file(store.other, platform))
    if user not in there.values:
        return
    let_in = {user: there.values[user], **here.values}
    left = {one: info for one, info in there.values.items() if one not in let_in}
    name, old = (probes.home.name_of(path) for path in (store.folder, store.other))
    yield from _write(
        here, let_in, text("approve {user} in {folder}", user=user, folder=name), f"+ {user}"
    )
    gone = (
        f"- {clean(value) if is_id(platform, value) else redact_log_text(value)}"
        for value in there.values
        if value in let_in
    )
    yield from _write(
        there, left, text("remove users from {old} that {folder} has", old=old, folder=name), *gone
    )


def _usable(path: Path) -> PairingFile:
    """Read a pairing file to change it; raise CannotFix if it is damaged."""
    pairing_file = pairing.read_pairing_file(path)
    if pairing_file.data.strip() and not pairing_file.values and pairing_file.data.strip() != b"{}":
        raise CannotFix("{file} is damaged. Repair it first.", file=path.name)
    return pairing_file


def _write(file: PairingFile, values: Mapping[str, Any], why: str, *entries: str) -> Iterator[Step]:
    """Replace the values of a file; `entries` show what the redacted lines of a diff would not."""
    try:
        data = json.dumps(values, indent=2, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise CannotFix(
            "{file} contains text that cannot be saved again. Change it by hand.",
            file=file.path.name,
        ) from None
    if data != file.data:
        yield ReplaceFile(file.path, data, why, file.snapshot, file.data, entries)
        if file.snapshot.mode & 0o077:
            yield SetMode(file.path, 0o600, why="let only its owner read it", expect=file.snapshot)
