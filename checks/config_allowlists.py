"""Find allowlists in config.yaml under a key that the platform ignores."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, named, text, unheard


@check(id="config-allowlists", group="configuration", codes=["CFG-ALLOWLIST-KEY"], by_release=True)
def config_allowlists(probes: Probes) -> Iterator[Finding]:
    """Do the lists of users in config.yaml count?"""
    found = probes.resolved()
    document = found.world.document
    if document.fault or not document.values:
        raise Skip("config.yaml holds no settings that can be read")
    for one in unheard(found):
        name, key = named(one.path), one.path[-1]
        right = f"{one.key} in the same place" if one.key else f"{one.variable} in .env"
        many = "1 user of it is" if len(one.users) == 1 else f"{len(one.users)} users of it are"
        yield Finding(
            code="CFG-ALLOWLIST-KEY",
            severity=Severity.WARNING,
            title=text(
                "{name} in config.yaml does not count, so {many} not let in", name=name, many=many
            ),
            subject=name,
            detail=text(
                "For {platform} this release reads {right}, not {key}.",
                platform=one.platform,
                right=right,
                key=key,
            ),
            evidence=(Evidence(document.source(*one.path).place, f"{name} is not read"),),
            fix="rename-key" if one.key else "move-list" if one.variable else None,
            data={"path": one.path, "new": one.key},
        )
