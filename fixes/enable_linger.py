"""Let the gateway outlive its user's login."""

from collections.abc import Iterator

from hermes_doctor.api import CannotFix, EnableLinger, Finding, Probes, Safety, Step, fix


@fix(id="enable-linger", codes=["GW-LINGER"], safety=Safety.SAFE)
def enable_linger(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Let the services of the home's owner run without a login, from boot on."""
    if probes.supervision().linger is not False:
        raise CannotFix("that user lingers by now")
    yield EnableLinger(probes.home)
