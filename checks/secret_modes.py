"""Check that only their owner can read files that hold tokens or keys."""

from collections.abc import Iterator

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, check, is_managed


@check(id="secret-modes", group="secrets", codes=["PERM-SECRETS"])
def secret_modes(probes: Probes) -> Iterator[Finding]:
    """Can only their owner read the files that hold secrets?"""
    files = probes.secrets()
    config = probes.secret_config()
    for file in [*files, *([config] if config else [])]:
        if not file.wide:
            continue
        meant = not file.by_others and file.by_group and _managed(probes)
        if file.by_others:
            severity, title = Severity.ERROR, "every user of this machine can read secrets"
        elif meant:
            severity, title = Severity.INFO, "the group of this managed home can read secrets"
        elif file.by_group:
            severity, title = Severity.WARNING, "other users can read secrets"
        else:
            severity, title = Severity.INFO, "only the folder above protects secrets"
        name = probes.home.name_of(file.path)
        yield Finding(
            code="PERM-SECRETS",
            severity=severity,
            title=title,
            subject=name,
            detail=(
                "It holds tokens, keys or whole conversations. If others do use this machine, "
                "renew those keys after closing it."
                if severity is not Severity.INFO
                else "Its package manager lets a group in. See that only you are in it."
                if meant
                else "A copy of the file made elsewhere would be open to everybody."
            ),
            evidence=(Evidence(name, f"mode {file.snapshot.mode:04o}"),),
            fix=None if meant else "tighten-modes",
            data={"path": file.path, "snapshot": file.snapshot},
        )


def _managed(probes: Probes) -> bool:
    try:
        return is_managed(probes)
    except CouldNotLook:
        return False
