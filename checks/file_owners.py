"""Check that the gateway's user may read and write the files in the home."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, check, text

_VITAL = (".env", "config.yaml", "auth.json", "gateway", "logs", "cron", "sessions", "platforms")
_SHOWN = 100


@check(id="file-owners", group="storage", codes=["PERM-OWNER"])
def file_owners(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """May the gateway read and write what lies in its home?"""
    user = probes.gateway_user()
    found = probes.owners()
    if not found.whole:
        yield CouldNotLook(
            text("only the first {seen} files were looked at; --deep looks at all", seen=found.seen)
        )
    if not found.closed:
        return
    for one in found.closed[:_SHOWN]:
        name = probes.home.name_of(one.path)
        vital = not one.readable or name.startswith(_VITAL)
        plain = one.snapshot.kind == "file"
        what = "write" if one.readable else "read"
        yield Finding(
            code="PERM-OWNER",
            severity=Severity.ERROR if vital else Severity.WARNING,
            title=text("the gateway cannot {what} {name}", what=what, name=name),
            subject=name,
            detail=(
                "It says `Permission denied` when it comes to it. A command run as root, with sudo "
                "or `docker exec`, leaves such files; run it as the gateway's user."
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
        )
    more = len(found.closed) - _SHOWN
    if more > 0:
        yield Finding(
            code="PERM-OWNER",
            severity=Severity.WARNING,
            title=text("{more} more files are closed to the gateway", more=more),
            subject="the home",
            detail="They are told one by one when those above are mended.",
            evidence=(Evidence("the home", f"{len(found.closed)} of {found.seen} files"),),
        )
