"""Check that only their owner can read files that hold tokens or keys."""

from collections.abc import Iterator

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    check,
    is_managed,
    text,
)


@check(id="secret-modes", group="secrets", codes=["PERM-SECRETS"])
def secret_modes(probes: Probes) -> Iterator[Finding]:
    """Can only the owner read the files with secrets?"""
    files = probes.secrets()
    config = probes.secret_config()
    for file in [*files, *([config] if config else [])]:
        if not file.wide:
            continue
        meant = not file.by_others and file.by_group and _managed(probes)
        name = probes.home.name_of(file.path)
        if file.by_others:
            severity = Severity.ERROR
            title = text("every user of this machine can read {file}", file=name)
        elif meant:
            severity = Severity.INFO
            title = text("the group of this managed home can read {file}", file=name)
        elif file.by_group:
            severity = Severity.WARNING
            title = text("every user in its group can read {file}", file=name)
        else:
            severity = Severity.INFO
            title = text("only its folder protects {file} from other users", file=name)
        yield Finding(
            code="PERM-SECRETS",
            severity=severity,
            title=title,
            subject=name,
            detail=(
                "It contains tokens, keys or conversations."
                if severity is not Severity.INFO
                else "The package manager that manages this home set it up this way."
                if meant
                else "Every user could read a copy of this file in another folder."
            ),
            evidence=(Evidence(name, f"mode {file.snapshot.mode:04o}"),),
            next="If other people use this machine, replace these keys after the repair."
            if severity is not Severity.INFO
            else "Make sure that only you are in this group."
            if meant
            else "",
            fix=None if meant else "tighten-modes",
            data={"path": file.path, "snapshot": file.snapshot},
        )


def _managed(probes: Probes) -> bool:
    try:
        return is_managed(probes)
    except CouldNotLook:
        return False
