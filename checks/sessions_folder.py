"""Check that the folder in which the gateway keeps the conversation of each chat exists."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, snapshot, text

_FOLDER = "sessions"
_FROM_DATABASE = (0, 18, 0)
"""From this release on, the gateway also finds the conversation of a chat in state.db."""


@check(id="sessions-folder", group="stores", codes=["SESSION-ROUTE-STALE"], by_release=True)
def sessions_folder(probes: Probes) -> Iterator[Finding]:
    """Is the folder with the conversations of the chats there?"""
    if snapshot(probes.home / _FOLDER).kind != "absent":
        return
    used = [one for one in probes.earlier_platforms() if one.where == "state.db"]
    if not used:
        raise Skip("no chat has written to the bot yet")
    installed = probes.installation()
    safe = installed is None or installed.release >= _FROM_DATABASE or bool(probes.gateways())
    yield Finding(
        code="SESSION-ROUTE-STALE",
        severity=Severity.INFO if safe else Severity.WARNING,
        title=text("{folder} is missing", folder=f"{_FOLDER}/"),
        subject=f"{_FOLDER}/",
        detail="No message is lost: they are in state.db. Hermes creates the folder again by "
        "itself."
        if safe
        else "No message is lost, but after the next start every chat begins a new conversation: "
        "this release stores which conversation belongs to which chat only in that folder.",
        evidence=(
            Evidence(f"{_FOLDER}/", "does not exist"),
            Evidence("state.db", f"{used[0].label}: {used[0].what}"),
        ),
        next="Nothing to do."
        if safe
        else "Restore it before the next start, if a backup has it: `hermes-doctor backup restore "
        "ID sessions/sessions.json`.",
    )
