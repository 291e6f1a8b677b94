"""Check that .env has no lines that Hermes skips or reads differently from what they look like."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    Evidence,
    Finding,
    OddLine,
    Probes,
    Resolved,
    Severity,
    Skip,
    check,
    is_needed,
    masked_name,
    odd_lines,
    text,
)


@check(id="env-lines", group="configuration", codes=["ENV-LINE"], needs="env")
def env_lines(probes: Probes) -> Iterator[Finding]:
    """Does Hermes read every line of .env as intended?"""
    env = probes.env()
    if env is None:
        raise Skip("no .env")
    found = probes.resolved()
    for one in odd_lines(env, found.world):
        lost = one.other if one.kind == "joined" else one.name
        silences = _silences(found, one, lost)
        yield Finding(
            code="ENV-LINE",
            severity=_severity(one, silences=silences),
            title=_title(one),
            subject=masked_name(lost),
            detail=_detail(one, masked_name(lost), silences=silences),
            next="" if one.new is not None else "Add = and the value, or delete the line.",
            evidence=(Evidence(f".env:{one.number}", _evidence(one)),),
            fix="mend-env-line" if one.new is not None else None,
            data={"line": one.number},
        )


def _silences(found: Resolved, one: OddLine, lost: str) -> bool:
    """Whether the bot or a platform fails without the variable, and it is set nowhere else."""
    if one.mended or one.kind == "valueless":
        return False
    value = found.world.variables.get(lost)
    if value and value.source.line != one.number:
        return False
    return is_needed(found, lost)


def _severity(one: OddLine, *, silences: bool) -> Severity:
    if silences:
        return Severity.ERROR
    return Severity.INFO if one.mended or not one.known else Severity.WARNING


def _title(one: OddLine) -> str:
    name = masked_name(one.name)
    if one.kind == "colon":
        return text(".env line {line}: colon instead of = after {name}", line=one.number, name=name)
    if one.kind == "space":
        return text(".env line {line}: space instead of = after {name}", line=one.number, name=name)
    if one.kind == "quote":
        return text(".env line {line}: quote of {name} is not closed", line=one.number, name=name)
    if one.kind == "joined":
        return text(".env line {line} has two variables", line=one.number)
    if one.kind == "lower":
        return text(".env line {line}: {name} in lower case", line=one.number, name=name)
    return text(".env line {line}: {name} without a value", line=one.number, name=name)


def _detail(one: OddLine, lost: str, *, silences: bool) -> str:
    if one.mended:
        return "Hermes splits the line itself and rewrites the file at its next start."
    if silences:
        return text(
            "The bot cannot answer where it needs {variable}, because Hermes does not read it.",
            variable=lost,
        )
    if one.kind == "quote":
        return "Hermes drops the line, or reads the next lines as part of the value."
    if one.kind == "joined":
        return text(
            "Hermes reads the whole line as the value of {first} and does not read {second}.",
            first=masked_name(one.name),
            second=lost,
        )
    return "Hermes ignores the line."


def _evidence(one: OddLine) -> str:
    """Return the line without its values."""
    name = masked_name(one.name)
    if one.kind == "colon":
        return f"{name}: ..."
    if one.kind == "space":
        return f"{name} ..."
    if one.kind == "quote":
        return text("{name}= with a quote that does not end", name=name)
    if one.kind == "joined":
        return f"{name}=... {masked_name(one.other)}=..."
    if one.kind == "lower":
        return text("{name} in lower case", name=name)
    return name
