"""Report what the next Hermes update would change in config.yaml and .env."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, age, check, text


@check(id="config-version", group="configuration", codes=["CFG-VERSION-OLD"])
def config_version(probes: Probes) -> Iterator[Finding]:
    """Would the next update leave config.yaml and .env as they are?"""
    installed = probes.installation()
    if installed is None:
        raise Skip("no Hermes is found whose number could be compared")
    found = probes.resolved()
    document = found.world.document
    if document.fault or not document.values:
        raise Skip("config.yaml holds no settings that can be read")
    if (newer := probes.newer()) and installed.release > found.release:
        raise Skip(
            text("not judged: {newer}", newer=newer)
        )  # the version that this release writes is unknown
    seen = age(found)
    where = document.source("_config_version").place
    if seen.written is not None and seen.written > seen.newest:
        yield Finding(
            code="CFG-VERSION-OLD",
            severity=Severity.INFO,
            title=text(
                "config.yaml is of a newer Hermes than the installed {version}",
                version=installed.version,
            ),
            subject="config.yaml",
            detail="The installed Hermes ignores settings that it does not know.",
            evidence=(_evidence(where, seen.written, seen.newest, installed.version),),
        )
    elif seen.losses:
        written = "no number" if seen.written is None else f"the number {seen.written}"
        yield Finding(
            code="CFG-VERSION-OLD",
            severity=Severity.WARNING if seen.harms else Severity.INFO,
            title=text(
                "config.yaml has {written}: `hermes update` and `hermes doctor --fix` change it",
                written=written,
            ),
            subject="config.yaml",
            detail=(
                text(
                    "Hermes {version} brings the file to number {newest}. Then ",
                    version=installed.version,
                    newest=seen.newest,
                )
                + "; ".join(seen.losses)
                + ". Run `hermes-doctor backup create` before you update."
            ),
            evidence=(_evidence(where, seen.written, seen.newest, installed.version),),
        )


def _evidence(where: str, written: int | None, newest: int, installed: str) -> Evidence:
    said = "is not there" if written is None else f"is {written}"
    return Evidence(where, f"_config_version {said}; Hermes {installed} writes {newest}")
