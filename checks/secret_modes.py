"""Files with tokens and keys in them are nobody else's to read."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check


@check(id="secret-modes", group="secrets", codes=["PERM-SECRETS"])
def secret_modes(probes: Probes) -> Iterator[Finding]:
    """Can only their owner read the files that hold secrets?"""
    files = probes.secrets()
    config = probes.secret_config()
    for file in [*files, *([config] if config else [])]:
        if not file.wide:
            continue
        if file.by_others:
            severity, title = Severity.ERROR, "every user of this machine can read secrets"
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
                else "A copy of the file made elsewhere would be open to everybody."
            ),
            evidence=(Evidence(name, f"mode {file.snapshot.mode:04o}"),),
            fix="tighten-modes",
            data={"path": file.path, "snapshot": file.snapshot},
        )
