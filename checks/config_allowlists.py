"""Find allowlists in config.yaml under a key that the platform ignores."""

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
    named,
    text,
    unheard,
)


@check(id="config-allowlists", group="configuration", codes=["CFG-ALLOWLIST-KEY"], by_release=True)
def config_allowlists(probes: Probes) -> Iterator[Finding]:
    """Does Hermes read the allowlists in config.yaml?"""
    found = probes.resolved()
    document = found.world.document
    if document.fault or not document.values:
        raise Skip("config.yaml has no readable settings")
    for one in unheard(found):
        name, key = named(one.path), one.path[-1]
        ignored = [user for user in one.users if user not in _paired(probes, one.platform)]
        if not ignored:
            detail = text("All its users are approved in another way, so nothing is broken.")
        elif one.key:
            detail = text(
                "The bot ignores {users} on this list: for {platform} this release reads {right}, "
                "not {wrong}.",
                users=count(len(ignored), "user"),
                platform=one.platform,
                right=one.key,
                wrong=key,
            )
        elif one.variable:
            detail = text(
                "The bot ignores {users} on this list: for {platform} this release reads only "
                "{variable} in .env.",
                users=count(len(ignored), "user"),
                platform=one.platform,
                variable=one.variable,
            )
        else:
            detail = text(
                "The bot ignores {users} on this list: for {platform} this release reads no list "
                "here.",
                users=count(len(ignored), "user"),
                platform=one.platform,
            )
        yield Finding(
            code="CFG-ALLOWLIST-KEY",
            severity=Severity.ERROR if ignored else Severity.INFO,
            title=text("{setting} in config.yaml is ignored", setting=name),
            subject=name,
            detail=detail,
            next=(
                ""
                if one.key or one.variable or not ignored
                else "Approve these users with `hermes pairing approve`."
            ),
            evidence=(
                Evidence(
                    document.source(*one.path).place,
                    text("{setting}: {users}", setting=name, users=count(len(one.users), "user")),
                ),
            ),
            fix="rename-key" if one.key else "move-list" if one.variable else None,
            data={"path": one.path, "new": one.key},
        )


def _paired(probes: Probes, platform: str) -> frozenset[str]:
    """Return the users whom a pairing code approved; empty if they cannot be read."""
    try:
        return probes.pairing().approved.get(platform, frozenset())
    except CouldNotLook:
        return frozenset()
