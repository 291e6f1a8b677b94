"""Check that no variable is set more than once in .env, where only the last line is used."""

from collections.abc import Iterator

from hermes_doctor.api import (
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    is_needed,
    masked_name,
    repeated,
    text,
)


@check(id="env-duplicates", group="configuration", codes=["ENV-DUP"], needs="env")
def env_duplicates(probes: Probes) -> Iterator[Finding]:
    """Is every variable in .env set only once?"""
    env = probes.env()
    if env is None:
        raise Skip("no .env")
    found = probes.resolved()
    for one in repeated(env, found.world):
        name = masked_name(one.name)
        yield Finding(
            code="ENV-DUP",
            severity=(
                Severity.INFO
                if one.same
                else Severity.ERROR
                if one.erased and is_needed(found, one.name)
                else Severity.WARNING
            ),
            title=(
                text(".env line {line} erases {variable}", line=one.counts, variable=name)
                if one.erased
                else text(
                    "{variable} is set {number} times in .env",
                    variable=name,
                    number=len(one.lines) + 1,
                )
            ),
            subject=name,
            detail=(
                "Hermes uses this empty line and ignores the value above it."
                if one.erased
                else "All lines have the same value, so nothing is broken."
                if one.same
                else text(
                    "Hermes uses only line {line}; the values are not the same.", line=one.counts
                )
            ),
            next=(
                text(
                    "Delete line {line}, or the line with the value if you do not want it.",
                    line=one.counts,
                )
                if one.erased
                else ""
            ),
            evidence=(
                *(Evidence(f".env:{line}", f"{name}=... (ignored)") for line in one.lines),
                Evidence(f".env:{one.counts}", f"{name}=... (used)"),
            ),
            fix=None if one.erased else "comment-out",  # the empty line may be intended
            data={"lines": one.lines, "name": one.name},
        )
