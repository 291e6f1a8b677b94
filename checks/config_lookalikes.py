"""Find characters in config.yaml that look like spaces or quotes but are not."""

from collections.abc import Iterator

from hermes_doctor.api import (
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    named,
    text,
    ways,
)

_MODEL = ("model", "default", "name", "base_url", "api_base", "api_key", "api")
"""The settings of the model that are sent to the provider."""


@check(id="config-lookalikes", group="configuration", codes=["CFG-LOOKALIKE"], by_release=True)
def config_lookalikes(probes: Probes) -> Iterator[Finding]:
    """Are spaces and quotes in config.yaml what they look like?"""
    resolved = probes.resolved()
    document = resolved.world.document
    if document.fault or not document.values:
        raise Skip("config.yaml has no readable settings")
    if document.data.isascii():
        return
    from hermes_doctor.api import lookalikes

    found = list(lookalikes(document))
    blanks = [one for one in found if one.blank]
    if blanks:
        yield Finding(
            code="CFG-LOOKALIKE",
            severity=Severity.WARNING,
            title="config.yaml is indented with characters that are not spaces",
            subject="config.yaml",
            detail=(
                "Hermes ignores the settings on these lines. Text copied from a web page often has "
                "such characters."
            ),
            evidence=tuple(
                Evidence(f"config.yaml:{one.line}", "U+00A0 or similar before the name")
                for one in blanks[:5]
            ),
            fix="straighten-config",
            data={"path": blanks[0].path},
        )
    for one in found:
        if one.blank or one.path == ("model", "provider"):  # reported as an unknown provider
            continue
        name = named(one.path)
        main = one.path[0] == "model" and one.path[-1] in _MODEL
        yield Finding(
            code="CFG-LOOKALIKE",
            severity=ways(resolved)[0].severity if main else Severity.WARNING,
            title=text("curly quotes around {setting} in config.yaml", setting=name),
            subject=name,
            detail=(
                "Requests to the model fail, because Hermes sends the quotes as part of the value."
                if main
                else "Hermes reads the quotes as part of the value, so the setting is wrong."
            ),
            evidence=(Evidence(f"config.yaml:{one.line}", "curly quotes"),),
            fix="straighten-config",
            data={"path": one.path},
        )
