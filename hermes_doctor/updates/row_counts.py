"""Counts rows, jobs and bytes, to notice data that an update has lost."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from hermes_doctor.home import Home
from hermes_doctor.model import CouldNotLook
from hermes_doctor.probes.probes import Probes

_TABLES = ("sessions", "messages")
_FILES = ("config.yaml", ".env", "auth.json")


def measure(home: Home) -> dict[str, int]:
    """Count rows of the message history, scheduled jobs, and bytes of the settings, if readable."""
    with contextlib.closing(Probes(home)) as probes:
        return _measured(probes)


def _measured(probes: Probes) -> dict[str, int]:
    found = {}
    for table in _TABLES:
        try:
            rows = probes.ask(probes.home / "state.db", f"SELECT count(*) FROM {table}").rows
            found[table] = int(str(rows[0][0]))
        except (CouldNotLook, OSError, ValueError, IndexError):
            continue
    with contextlib.suppress(CouldNotLook, OSError):
        found["jobs"] = sum(job.kind != "once" for job in probes.jobs())  # one-time jobs may end
    for name in _FILES:
        with contextlib.suppress(OSError):
            found[name] = os.path.getsize(probes.home / name)
    return found


def lost_data(before: Mapping[str, int], home: Home) -> tuple[str, ...]:
    """What has become less, as sentences."""
    return tuple(_lost(before, measure(home), home)) if before else ()


def _lost(before: Mapping[str, int], now: Mapping[str, int], home: Home) -> Iterator[str]:
    for name, amount in before.items():
        if name in _FILES:
            if amount and not now.get(name):
                there = os.path.lexists(home / name)
                yield f"the file {name} is now {'empty' if there else 'missing'}"
        elif now.get(name, amount) < amount:
            yield f"only {now[name]:,} of {amount:,} {name} are left"
        elif name == "messages" and amount and not os.path.exists(home / "state.db"):
            yield "the file state.db is now missing"
