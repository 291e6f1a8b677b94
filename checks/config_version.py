"""An old number in config.yaml: the next update changes the file, and sometimes .env."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, age, check


@check(id="config-version", group="configuration", codes=["CFG-VERSION-OLD"])
def config_version(probes: Probes) -> Iterator[Finding]:
    """Would the next update leave config.yaml and .env as they are?"""
    if probes.installation() is None:
        raise Skip("no Hermes is found whose number could be compared")
    found = probes.resolved()
    document = found.world.document
    if document.fault or not document.values:
        raise Skip("config.yaml holds no settings that can be read")
    seen = age(found)
    where = document.source("_config_version").place
    release = ".".join(map(str, found.release))
    if seen.written is not None and seen.written > seen.newest:
        yield Finding(
            code="CFG-VERSION-OLD",
            severity=Severity.INFO,
            title=f"config.yaml was written by a newer Hermes than the installed {release}",
            subject="config.yaml",
            detail="Settings that this release does not know are passed over.",
            evidence=(_evidence(where, seen.written, seen.newest),),
        )
    elif seen.losses:
        written = "no number" if seen.written is None else f"the number {seen.written}"
        yield Finding(
            code="CFG-VERSION-OLD",
            severity=Severity.WARNING if seen.harms else Severity.INFO,
            title=f"config.yaml has {written}: `hermes update` and `hermes doctor --fix` change it",
            subject="config.yaml",
            detail=(
                f"Hermes {release} brings the file to number {seen.newest}. Then "
                + "; ".join(seen.losses)
                + ". Run `hermes-doctor backup create` before you update."
            ),
            evidence=(_evidence(where, seen.written, seen.newest),),
        )


def _evidence(where: str, written: int | None, newest: int) -> Evidence:
    said = "is not there" if written is None else f"is {written}"
    return Evidence(where, f"_config_version {said}; this release writes {newest}")
