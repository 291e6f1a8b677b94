"""Give a platform a port of its own."""

from collections.abc import Iterator

from hermes_doctor.api import (
    Assign,
    Finding,
    Probes,
    Put,
    Safety,
    Step,
    edit_config,
    edit_env,
    fix,
    reload,
)


@fix(id="move-port", codes=["PLATFORM-PORT-CLASH"], safety=Safety.CONFIRM)
def move_port(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Let one of the two platforms listen on a port that nobody uses."""
    variable, port = finding.data["variable"], finding.data["port"]
    why = f"port {port} is free"
    if variable:
        yield from edit_env(probes, why, Assign(variable, str(port)))
    else:
        yield from edit_config(probes, why, Put(finding.data["path"], port))
    yield from reload(probes, "platform")
