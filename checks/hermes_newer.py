"""Check whether Hermes is newer than this tool knows, so that some checks cannot judge it."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, text


@check(id="hermes-newer", group="doctor", codes=["HERMES-NEWER"])
def hermes_newer(probes: Probes) -> Iterator[Finding]:
    """Does this tool know the Hermes of this home?"""
    newer = probes.newer()
    if newer is None:
        return
    installed = probes.installation()
    where = f"Hermes {installed.version} is installed" if installed else "no Hermes is found here"
    yield Finding(
        code="HERMES-NEWER",
        severity=Severity.INFO,
        title=text("not judged: {newer}", newer=newer),
        subject="Hermes",
        detail="Settings, providers, platforms, stored files and the structure of databases are "
        "not judged, and no fix changes a structure. Damage is still reported. Update "
        "hermes-doctor.",
        evidence=(Evidence("installation", where),),
    )
