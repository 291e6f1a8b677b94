"""Check that the gateway's user may read and write the files in the home."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    count,
    text,
)

_VITAL = (".env", "config.yaml", "auth.json", "gateway", "logs", "cron", "sessions", "platforms")
_SHOWN = 100


@check(id="file-owners", group="storage", codes=["PERM-OWNER"])
def file_owners(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Can the gateway read and write the files of its home?"""
    if probes.is_home_closed():
        raise Skip("the gateway may not write to the home itself")
    user = probes.gateway_user()
    found = probes.owners()
    if not found.whole:
        yield CouldNotLook(
            text("checked only the first {seen} files", seen=found.seen)
            if probes.deep
            else text(
                "checked only the first {seen} files; --deep checks more of them", seen=found.seen
            )
        )
    if not found.closed:
        return
    for one in found.closed[:_SHOWN]:
        name = probes.home.name_of(one.path)
        vital = not one.readable or name.startswith(_VITAL)
        plain = one.snapshot.kind == "file"
        yield Finding(
            code="PERM-OWNER",
            severity=Severity.ERROR if vital else Severity.WARNING,
            title=(
                text("the gateway cannot write {name}", name=name)
                if one.readable
                else text("the gateway cannot read {name}", name=name)
            ),
            subject=name,
            detail=(
                "Everything that needs this file fails with `Permission denied`. Usually a command "
                "that ran as root (sudo, docker exec) created it."
            ),
            evidence=(
                Evidence(
                    name,
                    f"owner {one.snapshot.uid}, mode {one.snapshot.mode:04o}; the gateway runs "
                    f"as {user.uid}",
                ),
            ),
            fix="give-back-owner" if plain else None,
            data={"path": one.path, "snapshot": one.snapshot, "uid": user.uid},
            next="" if plain else text("Give {name} to the gateway's user with chown.", name=name),
        )
    more = len(found.closed) - _SHOWN
    if more > 0:
        yield Finding(
            code="PERM-OWNER",
            severity=Severity.WARNING,
            title=text("the gateway cannot use {files}", files=count(more, "more file")),
            subject="the home",
            detail=text("Only the first {shown} are listed.", shown=_SHOWN),
            evidence=(Evidence("the home", f"{len(found.closed)} of {found.seen} files"),),
            next="Repair the listed files, then check again.",
        )
