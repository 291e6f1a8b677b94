"""Add the proxy variables of the current shell to the gateway's systemd unit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step

_LOCAL = ("localhost", "127.0.0.1", "::1")


@fix(id="give-proxy", codes=["PROXY-SERVICE"], safety=Safety.CONFIRM)
def give_proxy(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Lay the shell's proxies over the unit, in a file of its own that only its owner can read."""
    from hermes_doctor.api import drop_in

    names = [*finding.data.get("names", ()), "NO_PROXY"]
    found = {name: value for name in names if (value := _of_shell(name))}
    if set(found) <= {"NO_PROXY"}:
        raise CannotFix("this shell sets no proxy; under sudo it may be lost: use sudo -E")
    kept = [word for word in found.get("NO_PROXY", "").split(",") if word]
    found["NO_PROXY"] = ",".join([*kept, *(word for word in _LOCAL if word not in kept)])
    why = f"give it {', '.join(found)} of this shell"
    yield from drop_in(probes, found, why, variables=True)


def _of_shell(name: str) -> str:
    return os.environ.get(name) or os.environ.get(name.lower()) or ""
