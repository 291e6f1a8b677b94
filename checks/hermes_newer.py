"""Check whether Hermes is newer than hermes-doctor knows, so that some checks cannot judge it."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check


@check(id="hermes-newer", group="doctor", codes=["HERMES-NEWER"])
def hermes_newer(probes: Probes) -> Iterator[Finding]:
    """Does hermes-doctor know this release of Hermes?"""
    newer = probes.newer()
    if newer is None:
        return
    installed, can_learn = probes.installation(), probes.can_learn()
    version = f"Hermes {installed.version}" if installed else "no Hermes found here"
    yield Finding(
        code="HERMES-NEWER",
        severity=Severity.INFO,
        title=newer,
        subject="Hermes",
        detail=(
            "hermes-doctor does not check settings, providers, platforms and the structure of "
            "files here. Damage is still reported."
        ),
        evidence=(Evidence("installation", version),),
        next=(
            "Run `hermes-doctor learn`: it asks this Hermes what hermes-doctor does not know."
            if can_learn
            else "Update hermes-doctor."
        ),
        data={"suggests": ("hermes-doctor learn", "ask this newer Hermes, so that all checks run")}
        if can_learn
        else {},
    )
