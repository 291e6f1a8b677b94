"""Add the proxy variables of the current shell to the gateway's systemd unit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix, listed, text

if TYPE_CHECKING:
    from hermes_doctor.api import Step

_LOCAL = ("localhost", "127.0.0.1", "::1")


@fix(id="give-proxy", codes=["PROXY-SERVICE"], safety=Safety.CONFIRM)
def give_proxy(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Give the proxy of this shell to the gateway's service."""
    from hermes_doctor.api import drop_in

    names = [*finding.data.get("names", ()), "NO_PROXY"]
    found = {name: value for name in names if (value := _of_shell(name))}
    if set(found) <= {"NO_PROXY"}:
        raise CannotFix("This shell sets no proxy. If sudo removed it, use `sudo -E`.")
    kept = [word for word in found.get("NO_PROXY", "").split(",") if word]
    found["NO_PROXY"] = ",".join([*kept, *(word for word in _LOCAL if word not in kept)])
    why = text("set {names} as in this shell", names=listed([*found]))
    yield from drop_in(probes, found, why, variables=True)


def _of_shell(name: str) -> str:
    return os.environ.get(name) or os.environ.get(name.lower()) or ""
