"""Plan changes to the pairing files of Hermes, in the format that Hermes writes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.logs.secrets import redact_log_text
from hermes_doctor.message import count, text
from hermes_doctor.model import CannotFix
from hermes_doctor.planning.setting_edits import refuse_managed
from hermes_doctor.redaction import clean
from hermes_doctor.settings.user_ids import is_id, normalise_id
from hermes_doctor.steps.base import Step
from hermes_doctor.steps.files import ReplaceFile, SetMode
from hermes_doctor.stores import pairing
from hermes_doctor.stores.pairing import PairingFile

if TYPE_CHECKING:
    from hermes_doctor.probes.probes import Probes

_NEWEST = (99,)
_LONGEST = 200


def approve_pairing(probes: Probes, platform: str, user: str, entry: str) -> Iterator[Step]:
    """Approve one pending pairing request: add the user to the approved, remove the request."""
    refuse_managed(probes)
    if not is_id(platform, user):
        raise CannotFix(
            text(
                "This is not a valid id of {platform}. Approve the user with the code.",
                platform=platform,
            )
        )
    if probes.runtime().served:
        raise CannotFix("One gateway serves several profiles. Approve the user with the code.")
    folder = probes.pairing().folder
    waiting = pairing.read_pairing_file(pairing.pending_file(folder, platform))
    approved = _usable(pairing.approved_file(folder, platform))
    now = time.time()
    asked = waiting.values.get(entry)
    if not pairing.is_pending(asked, now) or asked is None or asked.get("user_id") != user:
        raise CannotFix("The request has expired. Ask the user to write to the bot again.")
    name = _name(asked.get("user_name", ""))
    found = probes.installation()
    id = normalise_id(platform, user, found.release if found else _NEWEST)
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
    limits = _usable(probes.pairing().folder / pairing.LIMITS)
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
            text(
                "This is not a valid id of {platform}. Approve the user with a code.",
                platform=platform,
            )
        )
    store = probes.pairing()
    here = _usable(pairing.approved_file(store.folder, platform))
    there = _usable(pairing.approved_file(store.other, platform))
    if user not in there.values:
        return
    let_in = {user: there.values[user], **here.values}
    left = {one: info for one, info in there.values.items() if one not in let_in}
    name, old = (probes.home.name_of(one) for one in (store.folder, store.other))
    yield from _write(
        here, let_in, text("approve {user} in {folder}", user=user, folder=name), f"+ {user}"
    )
    gone = (
        f"- {clean(one) if is_id(platform, one) else redact_log_text(one)}"
        for one in there.values
        if one in let_in
    )
    yield from _write(
        there, left, text("remove users from {old} that {folder} has", old=old, folder=name), *gone
    )


def _usable(path: Path) -> PairingFile:
    """Read a pairing file to change it; raise CannotFix if it is damaged."""
    found = pairing.read_pairing_file(path)
    if found.data.strip() and not found.values and found.data.strip() != b"{}":
        raise CannotFix(text("{file} is damaged. Repair it first.", file=path.name))
    return found


def _write(file: PairingFile, values: Mapping[str, Any], why: str, *entries: str) -> Iterator[Step]:
    """Replace the values of a file; `entries` show what the redacted lines of a diff would not."""
    try:
        data = json.dumps(values, indent=2, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise CannotFix(
            text(
                "{file} contains text that cannot be saved again. Change it by hand.",
                file=file.path.name,
            )
        ) from None
    if data != file.data:
        yield ReplaceFile(file.path, data, why, file.snapshot, file.data, entries)
        if file.snapshot.mode & 0o077:
            yield SetMode(file.path, 0o600, why="let only its owner read it", expect=file.snapshot)


def _name(said: object) -> str:
    """A user's display name as it is stored: valid text of limited length."""
    text = said if isinstance(said, str) else ""
    return text[:_LONGEST].encode("utf-8", "replace").decode()
