"""Characters that look like a space or a quote and are letters to YAML."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, lookalikes, named


@check(id="config-lookalikes", group="configuration", codes=["CFG-LOOKALIKE"])
def config_lookalikes(probes: Probes) -> Iterator[Finding]:
    """Are spaces and quotes in config.yaml what they look like?"""
    document = probes.resolved().world.document
    if document.fault or not document.values:
        raise Skip("config.yaml holds no settings that can be read")
    if document.data.isascii():
        return
    for one in lookalikes(document):
        name = named(one.path)
        yield Finding(
            code="CFG-LOOKALIKE",
            severity=Severity.WARNING,
            title=(
                f"line {one.line} of config.yaml is indented with blanks that are no spaces"
                if one.blank
                else f"the quotes around {name} in config.yaml are part of the value"
            ),
            subject=f"line {one.line}" if one.blank else name,
            detail=(
                "Copied from a web page, such blanks become part of the name: the setting belongs "
                "to nothing and is not read. Write the line anew with the space bar."
                if one.blank
                else "Curly quotes are letters to YAML. Write plain ones, or none."
            ),
            evidence=(
                Evidence(
                    f"config.yaml:{one.line}",
                    "U+00A0 or the like before the name" if one.blank else "curly quotes",
                ),
            ),
            fix="straighten-config",
            data={"path": one.path},
        )
