"""Check whether Hermes' own circuit breaker counts restarts that interrupted answers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    clock,
    read_json,
    text,
)

_FILE = "gateway/restart_loop.json"
_MOST = 64 * 1024
_LIMIT, _GAP, _RECENT = 3, timedelta(minutes=5), timedelta(hours=1)
"""So many starts, each within the gap of the one before, trip the breaker."""


@check(id="restart-loop", group="gateway", codes=["GW-CRASH-LOOP"])
def restart_loop(probes: Probes) -> Iterator[Finding]:
    """Has Hermes counted no loop of restarts?"""
    counted = _boots(probes)
    if not counted:
        raise Skip("Hermes has counted no interrupting restart")
    boots = [boot for boot in counted if boot > probes.proved_at()]
    if not boots:
        return
    chain = boots[-1:]
    for boot in reversed(boots[:-1]):
        if chain[0] - boot > _GAP:
            break
        chain.insert(0, boot)
    if len(chain) < _LIMIT or datetime.now(UTC) - chain[-1] > _RECENT:
        return
    yield Finding(
        code="GW-CRASH-LOOP",
        severity=Severity.ERROR,
        title=text("{number} restarts in a row interrupted answers", number=len(chain)),
        subject="gateway",
        detail="Users lose answers. To end the loop, Hermes does not continue them after a start.",
        evidence=(
            Evidence(
                _FILE,
                text(
                    "{number} starts from {first} to {last}",
                    number=len(chain),
                    first=clock(chain[0]),
                    last=clock(chain[-1]),
                ),
            ),
        ),
        since=chain[0],
        next="Read in the log what stopped the gateway each time.",
    )


def _boots(probes: Probes) -> list[datetime]:
    """Return the counted starts, oldest first."""
    try:
        said = read_json(probes.home / _FILE, _MOST)
        boots = said.get("boots") if isinstance(said, dict) else None
        numbers = [float(one) for one in boots[-100:]] if isinstance(boots, list) else []
        return sorted(datetime.fromtimestamp(one, UTC) for one in numbers)
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, OverflowError, OSError):
        raise CouldNotLook(text("{file}: could not be read", file=_FILE)) from None
