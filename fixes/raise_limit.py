"""Raise the limit of open files in the gateway's systemd unit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix, text

if TYPE_CHECKING:
    from hermes_doctor.api import Step

ENOUGH = 65536
NO_END = 2**31


@fix(id="raise-limit", codes=["GW-FD-EXHAUST", "GW-FD-LIMIT-LOW"], safety=Safety.CONFIRM)
def raise_limit(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Allow the gateway to open more files."""
    from hermes_doctor.api import drop_in, service_limit

    soft, hard = service_limit(probes, "LimitNOFILE")
    wanted = min(ENOUGH, hard)
    if soft >= wanted:
        raise CannotFix(
            text(
                "systemd allows no more than {limit} open files. Raise its hard limit first.",
                limit=hard,
            )
        )
    kept = f"{wanted}:{hard}" if wanted < hard < NO_END else f"{wanted}"
    yield from drop_in(
        probes,
        {"LimitNOFILE": kept},
        why=text("allow {new} open files instead of {old}", new=wanted, old=soft),
    )
