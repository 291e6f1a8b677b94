"""Report what the next Hermes update would change in config.yaml and .env."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, age, check, text


@check(id="config-version", group="configuration", codes=["CFG-VERSION-OLD"], needs="hermes")
def config_version(probes: Probes) -> Iterator[Finding]:
    """Does the next update keep config.yaml and .env unchanged?"""
    installed = probes.installation()
    if installed is None:
        raise Skip("no installed Hermes was found")
    found = probes.resolved()
    document = found.world.document
    if document.fault or not document.values:
        raise Skip("config.yaml has no readable settings")
    if (newer := probes.newer()) and installed.release > found.release:
        raise Skip(newer)  # the version that this release writes is unknown
    seen = age(found)
    where = document.source("_config_version").place
    if seen.written is not None and seen.written > seen.newest:
        yield Finding(
            code="CFG-VERSION-OLD",
            severity=Severity.INFO,
            title=text(
                "config.yaml is from a newer Hermes than {version}",
                version=installed.version,
            ),
            subject="config.yaml",
            detail="The installed Hermes ignores settings that it does not know.",
            evidence=(_evidence(where, seen.written, seen.newest, installed.version),),
        )
    elif seen.losses:
        yield Finding(
            code="CFG-VERSION-OLD",
            severity=Severity.WARNING if seen.harms else Severity.INFO,
            title="the next update of Hermes changes config.yaml",
            subject="config.yaml",
            detail=(
                "`hermes update` and `hermes doctor --fix` also empty ANTHROPIC_TOKEN in .env. "
                "Without another key the bot then stops answering."
                if seen.harms
                else "`hermes update` and `hermes doctor --fix` make the changes in this list."
            ),
            next="Run `hermes-doctor backup create` before you update.",
            evidence=(
                *(Evidence("config.yaml", loss) for loss in seen.losses),
                _evidence(where, seen.written, seen.newest, installed.version),
            ),
        )


def _evidence(where: str, written: int | None, newest: int, installed: str) -> Evidence:
    if written is None:
        said = text(
            "_config_version is missing; Hermes {version} writes {newest}",
            version=installed,
            newest=newest,
        )
    else:
        said = text(
            "_config_version is {number}; Hermes {version} writes {newest}",
            number=written,
            version=installed,
            newest=newest,
        )
    return Evidence(where, said)
