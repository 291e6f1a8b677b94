"""Plan the edits that add one user id to the allowlist which the platform uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hermes_doctor.message import text
from hermes_doctor.model import CannotFix
from hermes_doctor.planning.setting_edits import ACCESS, edit_config, edit_env, restart_if_running
from hermes_doctor.settings.access import GLOBAL_USERS
from hermes_doctor.settings.admission import PlatformAdmission, split_ids
from hermes_doctor.settings.edit.edits import Assign, Put
from hermes_doctor.settings.inputs import section
from hermes_doctor.settings.sourced_text import CONFIG, ENV, Text
from hermes_doctor.settings.user_ids import is_id, normalise_id

if TYPE_CHECKING:
    from hermes_doctor.probes.probes import Probes
    from hermes_doctor.steps.base import Step

_MIRRORS = (0, 18)
"""Since this release pairing also adds the id to the allowlist, if there is one."""


def admit_user(probes: Probes, platform: str, user: str) -> Iterator[Step]:
    """Add a user whom the platform refused to its allowlist."""
    if not is_id(platform, user):
        raise CannotFix(
            text(
                "This is not a valid id of {platform}. Add the right id to the allowlist yourself.",
                platform=platform,
            )
        )
    if not any((one.platform, one.user) == (platform, user) for one in probes.refusals()):
        raise CannotFix("The logs no longer show that this user was refused. Add the id yourself.")
    door = _door(probes, platform)
    if door is None:
        raise CannotFix(
            text(
                "{platform} is not configured or does not check its users. Nothing to do.",
                platform=platform,
            )
        )
    if door.admits(user):
        return
    why = text("allow {user} on {platform}", user=user, platform=door.label)
    own = door.own
    if own is None and door.policed is not None:
        raise CannotFix(
            text(
                "{platform} uses its own allowlist in config.yaml, and one in .env would replace "
                "it. Add the id to `allow_from` there.",
                platform=platform,
            )
        )
    shared = next((one for one in door.lists if one.source.name == GLOBAL_USERS), None)
    if own is None and shared is not None:
        yield from _share(probes, shared, user)
    elif own is None:
        if door.invites or probes.pairing().approved.get(platform):
            raise CannotFix(
                text(
                    "Users of {label} are approved by pairing, and an allowlist would refuse them. "
                    "Run `hermes pairing approve {platform} CODE` with the user's code.",
                    label=door.label,
                    platform=platform,
                )
            )
        only = text(
            "allow {user} on {platform}, and from now on only users on this allowlist",
            user=user,
            platform=door.label,
        )
        yield from edit_env(probes, only, Assign(door.variable, user))
    elif own.source.kind == ENV:
        yield from edit_env(probes, why, Assign(door.variable, _joined(own, user)))
    elif own.source.kind == CONFIG:
        yield from edit_config(probes, why, _put(probes, own, user))
    else:
        raise CannotFix(
            text(
                "The service or container of the gateway sets {name}. Add ,{user} to it there.",
                name=door.variable,
                user=user,
            )
        )
    yield from restart_if_running(probes, ACCESS)


def _share(probes: Probes, shared: Text, user: str) -> Iterator[Step]:
    """Add the id to the allowlist of all platforms: a first list of its own would replace it."""
    if shared.source.kind != ENV:
        raise CannotFix(
            text(
                "The service or container of the gateway sets {name}. Add ,{user} to it there.",
                name=GLOBAL_USERS,
                user=user,
            )
        )
    why = text("allow {user} on every platform, like all users on this list", user=user)
    yield from edit_env(probes, why, Assign(GLOBAL_USERS, _joined(shared, user)))


def mirror_user(probes: Probes, platform: str, user: str) -> Iterator[Step]:
    """Add a paired user to the allowlist in .env, as newer releases do when they pair."""
    found = probes.installation()
    door = _door(probes, platform)
    if door is None or door.own is None or (found is not None and found.release < _MIRRORS):
        return
    id = normalise_id(platform, user, found.release if found else _MIRRORS)
    if door.own.source.kind == ENV and not {"*", id} & {*split_ids(door.own)}:
        why = text("add the approved user to the allowlist of {platform}", platform=door.label)
        yield from edit_env(probes, why, Assign(door.variable, _joined(door.own, id)))


def _door(probes: Probes, platform: str) -> PlatformAdmission | None:
    return next((one for one in probes.doors() if one.name == platform), None)


def _joined(listed: Text, user: str) -> str:
    bare = listed.rstrip(", ")
    return f"{bare},{user}" if bare else user


def _put(probes: Probes, listed: Text, user: str) -> Put:
    """The edit that adds an id to a list in config.yaml, with the type of the other items."""
    path = tuple(listed.source.name.split("."))
    value: Any = section(probes.resolved().world.raw, *path[:-1]).get(path[-1])
    if not isinstance(value, list):
        return Put(path, _joined(listed, user))
    numbers = value and all(isinstance(one, int) for one in value) and user.isdigit()
    return Put((*path, len(value)), int(user) if numbers else user)
