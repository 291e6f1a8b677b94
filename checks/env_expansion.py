"""Check that the variables of .env do not multiply each other until the memory is used up."""

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, line_of_expansion


@check(id="env-expansion", group="configuration", codes=["ENV-EXPANDS"], needs="env")
def env_expansion(probes: Probes) -> Iterator[Finding]:
    """Do the variables in .env expand to a reasonable size?"""
    env = probes.env()
    if env is None:
        raise Skip("no .env")
    line = line_of_expansion(env)
    if line is None:
        return
    yield Finding(
        code="ENV-EXPANDS",
        severity=Severity.ERROR,
        title="the variables in .env expand to more than 4 MB",
        subject=".env",
        detail=(
            "Hermes expands them when it starts and at every message, which can use up the memory "
            "of the machine."
        ),
        next="Write the value in this line without `${NAME}`, or delete the line.",
        evidence=(Evidence(f".env:{line}", "the limit is passed here"),),
    )
