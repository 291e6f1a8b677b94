"""Check that .env has no lines that Hermes skips or reads differently from what they look like."""

from collections.abc import Iterator

from hermes_doctor.api import (
    Evidence,
    Finding,
    OddLine,
    Probes,
    Severity,
    Skip,
    check,
    masked_name,
    odd_lines,
)

_CREDENTIAL = ("_TOKEN", "_KEY", "_SECRET", "_PASSWORD")


@check(id="env-lines", group="configuration", codes=["ENV-LINE"])
def env_lines(probes: Probes) -> Iterator[Finding]:
    """Is every line of .env read as it was meant?"""
    env = probes.env()
    if env is None:
        raise Skip("there is no .env")
    for one in odd_lines(env, probes.resolved().world):
        title, detail, what = _words(one)
        yield Finding(
            code="ENV-LINE",
            severity=_severity(one),
            title=title,
            subject=masked_name(one.other if one.kind == "joined" else one.name),
            detail=detail,
            evidence=(Evidence(f".env:{one.number}", what),),
            fix="mend-env-line" if one.new is not None else None,
            data={"line": one.number},
        )


def _severity(one: OddLine) -> Severity:
    if one.mended or not one.known:
        return Severity.INFO
    if one.kind == "valueless":
        return Severity.WARNING
    lost = one.other if one.kind == "joined" else one.name
    return Severity.ERROR if lost.endswith(_CREDENTIAL) else Severity.WARNING


def _words(one: OddLine) -> tuple[str, str, str]:
    """Return the title, the advice and the evidence for one line."""
    name = masked_name(one.name)
    if one.kind == "colon":
        return (
            f"line {one.number} of .env has a colon after {name}, so it is not read",
            "Write = instead of the colon.",
            f"{name}: instead of {name}=",
        )
    if one.kind == "quote":
        return (
            f"the quote around {name} in line {one.number} of .env is never closed",
            "python-dotenv drops the line, or takes the lines below it into the value. Close it.",
            f"{name}= with a quote that does not end",
        )
    if one.kind == "joined":
        other = masked_name(one.other)
        return (
            f"line {one.number} of .env holds two variables, {name} and {other}",
            (
                "Hermes takes them apart itself and writes the file anew at its next start."
                if one.mended
                else f"All of it becomes the value of {name}. Put {other} on a line of its own."
            ),
            f"{name}=… {other}=…",
        )
    if one.kind == "lower":
        return (
            f"line {one.number} of .env has the name of {name} in small letters: nobody reads it",
            f"Write {name}.",
            f"{name} in small letters",
        )
    return (
        f"line {one.number} of .env names {name} and gives it no value",
        "Write = and the value after it, or take the line out.",
        f"{name} without =",
    )
