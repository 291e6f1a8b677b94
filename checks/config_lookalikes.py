"""Find characters in config.yaml that look like spaces or quotes but are not."""

from collections.abc import Iterator

from hermes_doctor.api import (
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    lookalikes,
    named,
    text,
)


@check(id="config-lookalikes", group="configuration", codes=["CFG-LOOKALIKE"], by_release=True)
def config_lookalikes(probes: Probes) -> Iterator[Finding]:
    """Are spaces and quotes in config.yaml what they look like?"""
    document = probes.resolved().world.document
    if document.fault or not document.values:
        raise Skip("config.yaml holds no settings that can be read")
    if document.data.isascii():
        return
    found = list(lookalikes(document))
    blanks = [one for one in found if one.blank]
    if blanks:
        lines = ", ".join(str(one.line) for one in blanks[:5])
        yield Finding(
            code="CFG-LOOKALIKE",
            severity=Severity.WARNING,
            title="config.yaml is indented with blanks that are no spaces",
            subject="config.yaml",
            detail=(
                text(
                    "Copied from a web page, such blanks become part of the name: the "
                    "setting belongs to nothing and is not read. Write line {lines} "
                    "anew with the space bar.",
                    lines=lines,
                )
            ),
            evidence=tuple(
                Evidence(f"config.yaml:{one.line}", "U+00A0 or the like before the name")
                for one in blanks[:5]
            ),
            fix="straighten-config",
            data={"path": blanks[0].path},
        )
    for one in found:
        if one.blank or one.path == ("model", "provider"):  # reported as an unknown provider
            continue
        name = named(one.path)
        yield Finding(
            code="CFG-LOOKALIKE",
            severity=Severity.WARNING,
            title=text("the quotes around {name} in config.yaml are part of the value", name=name),
            subject=name,
            detail="Curly quotes are letters to YAML. Write plain ones, or none.",
            evidence=(Evidence(f"config.yaml:{one.line}", "curly quotes"),),
            fix="straighten-config",
            data={"path": one.path},
        )
