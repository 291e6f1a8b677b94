"""Check that no variable is set more than once in .env, where only the last line is used."""

from collections.abc import Iterator

from hermes_doctor.api import (
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    masked_name,
    repeated,
    text,
)


@check(id="env-duplicates", group="configuration", codes=["ENV-DUP"])
def env_duplicates(probes: Probes) -> Iterator[Finding]:
    """Does every variable stand in .env once?"""
    env = probes.env()
    if env is None:
        raise Skip("there is no .env")
    for one in repeated(env, probes.resolved().world):
        name = masked_name(one.name)
        lines = " and ".join(map(str, one.lines))
        yield Finding(
            code="ENV-DUP",
            severity=Severity.INFO if one.same else Severity.WARNING,
            title=(
                text(
                    "the empty {name}= in line {counts} of .env erases the one above",
                    name=name,
                    counts=one.counts,
                )
                if one.erased
                else text(
                    "{name} stands in .env {number} times", name=name, number=len(one.lines) + 1
                )
                + (
                    ", each time the same"
                    if one.same
                    else text(", and only line {counts} counts", counts=one.counts)
                )
            ),
            subject=name,
            detail=(
                text("Line {lines} does not count. Take out what you do not need.", lines=lines)
                + (
                    text(" If the value is meant, that is line {counts}.", counts=one.counts)
                    if one.erased
                    else ""
                )
            ),
            evidence=(
                *(Evidence(f".env:{line}", f"{name}, does not count") for line in one.lines),
                Evidence(f".env:{one.counts}", f"{name}, counts"),
            ),
            fix=None if one.erased else "comment-out",  # the empty line may be intended
            data={"lines": one.lines, "name": one.name},
        )
