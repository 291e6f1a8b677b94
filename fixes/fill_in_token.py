"""Put a token where Hermes reads it."""

from collections.abc import Iterator

from hermes_doctor.api import (
    Assign,
    CannotFix,
    Finding,
    Probes,
    Safety,
    Step,
    edit_env,
    fix,
    reload,
)


@fix(id="fill-in-token", codes=["PLATFORM-CREDENTIALS"], safety=Safety.CONFIRM)
def fill_in_token(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Write the value that config.yaml refers to into .env under the name that Hermes reads."""
    name, other = finding.data["variable"], finding.data["other"]
    value = probes.resolved().world.getenv(other)
    if not value:
        raise CannotFix(f"{other} is not set any more")
    yield from edit_env(probes, f"as {other} has it", Assign(name, str(value)))
    yield from reload(probes, "platform")
