"""Let somebody in who was turned away."""

from collections.abc import Iterator

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, Step, admit_user, fix


@fix(id="add-allowed-user", codes=["AUTHZ-UNAUTHORIZED"], safety=Safety.CONFIRM, personal=True)
def add_allowed_user(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Add the one id that the log named to the list that this platform goes by."""
    user = finding.data.get("user")
    if not isinstance(user, str):
        raise CannotFix("the log names nobody who could be added")
    yield from admit_user(probes, finding.data["platform"], user)
